//! Whether the configuration still has every name that keys in the data file hold.

use crate::admin::Request;
use crate::admin::view::Name;
use crate::cli::check::Finding;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::link::Link;
use crate::config::Config;

/// One finding for each name that is lost.
pub(super) async fn lost(config: &Config, link: &mut Link) -> Result<Vec<Finding>, Error> {
    let used: Vec<Name> = match link.ask(Request::Names).await {
        Ok(used) => used,
        // Before the first `serve` there is no file, which is as it should be.
        Err(error) if error.exit() == Exit::DataFile && !config.data.exists() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lost = config.keeps(used.into_iter().filter_map(Name::used).collect()).err();
    let lost = lost.iter().flat_map(|lost| lost.as_slice());
    Ok(lost.map(|name| Finding::bad("names", name.to_string())).collect())
}
