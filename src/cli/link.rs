//! The way to the appliance: through the socket of the running `serve`, else by its data file.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::admin::{self, AskError, Call, Context, Failure, Request};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::{Setting, environment, print};
use crate::client::Amocrm;
use crate::clock::SharedClock;
use crate::config::Config;
use crate::store::Store;

/// The person at the terminal, for the audit trail.
pub(super) fn who() -> String {
    let names = ["SUDO_USER", "USER", "LOGNAME"];
    names.into_iter().find_map(environment).unwrap_or_else(|| "cli".to_owned())
}

/// Asks whoever has the data file; [`Link::close`] ends it.
pub(super) struct Link {
    config: Arc<Config>,
    clock: SharedClock,
    accounts: BTreeMap<String, Amocrm>,
    who: String,
    way: Way,
}

enum Way {
    /// Nothing was asked yet.
    Untried,
    /// A `serve` answered.
    Live,
    /// None runs, and the file is open.
    Offline(Context),
}

impl Link {
    /// A link to the data folder of a configuration; `accounts` are for offline changes outside.
    pub(super) fn new(config: Config, setting: &Setting, accounts: BTreeMap<String, Amocrm>) -> Self {
        Self { config: Arc::new(config), clock: setting.clock.clone(), accounts, who: who(), way: Way::Untried }
    }

    /// Asks one thing.
    pub(super) async fn ask<T: DeserializeOwned>(&mut self, request: Request) -> Result<T, Error> {
        let answered = self.answer(request).await?;
        serde_json::from_value(answered).map_err(|error| {
            let hint = "the running tambour may be of another version: systemctl restart tambour";
            Error::new(Exit::Internal, &error).hint(hint)
        })
    }

    async fn answer(&mut self, request: Request) -> Result<Value, Error> {
        if let Way::Offline(context) = &self.way {
            return offline(context, request, &self.who).await;
        }
        let call = Call { who: self.who.clone(), request };
        match admin::ask(&self.config.data, &call).await {
            Err(AskError::NobodyAnswers { .. }) if matches!(self.way, Way::Untried) => {
                let context = self.open()?;
                let answered = offline(&context, call.request, &self.who).await;
                self.way = Way::Offline(context);
                answered
            }
            answered => {
                let is_first = matches!(self.way, Way::Untried);
                if is_first && !matches!(answered, Err(AskError::Broken { .. })) {
                    print::say("(the running tambour answers)");
                }
                self.way = Way::Live;
                Ok(answered?)
            }
        }
    }

    fn open(&self) -> Result<Context, Error> {
        let (config, clock) = (self.config.clone(), self.clock.clone());
        let store = Store::open_offline(&config.data, clock.clone(), config.pauses.clone())?;
        print::say("(no tambour runs: its data file answers)");
        Ok(Context {
            store,
            clock,
            config,
            accounts: self.accounts.clone(),
            metrics: Arc::default(),
            certificate: None,
        })
    }

    /// Closes what was opened.
    pub(super) async fn close(self) {
        if let Way::Offline(context) = self.way {
            context.store.close().await;
        }
    }
}

async fn offline(context: &Context, request: Request, who: &str) -> Result<Value, Error> {
    admin::answer(context, request, who).await.map_err(|error| Failure::from(error).into())
}

/// Asks one thing and closes the link.
pub(super) async fn ask_once<T: DeserializeOwned>(setting: &Setting, request: Request) -> Result<T, Error> {
    let mut link = Link::new(setting.load_without_secrets()?, setting, BTreeMap::new());
    let answered = link.ask(request).await;
    link.close().await;
    answered
}
