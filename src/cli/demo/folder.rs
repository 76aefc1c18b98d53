//! The demo's folder: certificate, secrets and a configuration that points to the sandbox.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use tempfile::TempDir;

use crate::cli::demo::Error;
use crate::sandbox::Settings;

/// The shop that the demo plays.
pub(in crate::cli) const SHOP: &str = "tambour-test.myshopify.com";
/// The secret that the shop signs with.
pub(in crate::cli) const SHOP_SECRET: &str = "shpss_demo_secret";
/// The long part of the address that amoCRM sends to.
pub(in crate::cli) const ADDRESS_TOKEN: &str = "demo-address-token-5f3a9c";
/// The stage that the contract note belongs to.
pub(in crate::cli) const STAGE_CONTRACT: u64 = 61_000_003;
/// The stage before it.
pub(in crate::cli) const STAGE_FIRST: u64 = 61_000_002;

/// The folder, temporary or given.
pub(in crate::cli) struct Folder {
    path: PathBuf,
    certificate: CertificateDer<'static>,
    _temporary: Option<TempDir>,
}

impl Folder {
    /// Makes the folder's files; `sandbox` is where the emulated systems listen.
    pub(in crate::cli) fn make(dir: Option<PathBuf>, sandbox: SocketAddr) -> Result<Self, Error> {
        let io = |source| Error::Io("make the demo's folder", source);
        let temporary = if dir.is_none() { Some(TempDir::with_prefix("tambour-demo-").map_err(io)?) } else { None };
        let path = dir.or_else(|| temporary.as_ref().map(|t| t.path().to_owned())).unwrap_or_default();
        if path.join("data").exists() {
            return Err(Error::Used(path));
        }
        fs::create_dir_all(&path).map_err(io)?;
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).map_err(Error::Certificate)?;
        let token = Settings::default().amocrm_token;
        let files = [
            ("certificate.pem", made.cert.pem()),
            ("key.pem", made.signing_key.serialize_pem()),
            ("shopify.secret", SHOP_SECRET.to_owned()),
            ("address.secret", ADDRESS_TOKEN.to_owned()),
            ("amocrm.secret", token),
            ("tambour.toml", configuration(sandbox)),
        ];
        for (name, content) in files {
            write_private(&path.join(name), &content).map_err(io)?;
        }
        Ok(Self { path, certificate: made.cert.der().clone(), _temporary: temporary })
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::cli) fn config(&self) -> PathBuf {
        self.path.join("tambour.toml")
    }

    pub(in crate::cli) fn log(&self) -> PathBuf {
        self.path.join("serve.log")
    }

    pub(in crate::cli) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }
}

fn write_private(path: &Path, content: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

/// One shop, one CRM account; waits are short, because the sandbox's are.
fn configuration(sandbox: SocketAddr) -> String {
    format!(
        r#"language = "ru"
data = "data"
pauses = ["1s", "2s", "5s"]

[listener]
address = "127.0.0.1:0"
certificate = "certificate.pem"
key = "key.pem"

[admin]
address = "127.0.0.1:0"

[sources.shop]
kind = "shopify"
shops = ["{SHOP}"]
secrets = [{{ label = "demo", file = "shopify.secret" }}]

[sources.crm]
kind = "amocrm"
account_id = 31000001
address_token = {{ file = "address.secret" }}

[targets.crm]
kind = "amocrm"
url = "http://{sandbox}"
account_id = 31000001
token = {{ file = "amocrm.secret" }}
responsible_user_id = 9000001
currency = "RUB"
rate = 50
timeout = "2s"
search_lag = "1s"
doubt_tail = "500ms"

[tasks.deal]
kind = "deal"
target = "crm"
pipeline_id = 7100001
status_id = {STAGE_FIRST}
name = "Заказ {{{{ order.name }}}}"

[tasks.contract]
kind = "note"
target = "crm"
on_return = "keep"
valid_in = [{STAGE_CONTRACT}]
text = "Сделка «{{{{ lead.name }}}}» на этапе «Договор», сумма {{{{ lead.price }}}}"

[[routes]]
source = "shop"
events = ["orders/create", "orders/updated"]
task = "deal"
since = "2020-01-01T00:00:00Z"

[[routes]]
source = "crm"
events = ["leads.status"]
where = {{ status_id = {STAGE_CONTRACT} }}
task = "contract"
since = "2020-01-01T00:00:00Z"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let make = || Folder::make(Some(folder.path().to_owned()), "127.0.0.1:1".parse().unwrap());
        assert!(make().is_ok());
        fs::create_dir(folder.path().join("data")).unwrap();
        assert!(matches!(make().err(), Some(Error::Used(path)) if path == folder.path()));
    }
}
