//! What the emulated account and shop look like at the start.

/// The account, the shop, their tokens and the seed of chance.
#[derive(Clone)]
pub struct Settings {
    /// The numeric amoCRM account id.
    pub account_id: u64,
    /// The amoCRM subdomain.
    pub subdomain: String,
    /// ISO 4217 code of the account's currency.
    pub currency: String,
    /// The bearer token that amoCRM calls must carry.
    pub amocrm_token: String,
    /// The first is the main one.
    pub pipelines: Vec<Pipeline>,
    /// The first one owns the token and acts as the manager.
    pub users: Vec<User>,
    /// The access token that shop calls must carry.
    pub shop_token: String,
    /// Decides every fault that is left to chance.
    pub seed: u64,
}

/// A pipeline of deals.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its stages in order; each pipeline has won (142) and lost (143).
    pub stages: Vec<Stage>,
}

/// A stage of a pipeline.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// `#rrggbb`.
    pub color: String,
    /// Place in the pipeline.
    pub sort: u64,
}

/// Somebody who can be responsible.
#[derive(Clone, Debug)]
pub struct User {
    /// The id.
    pub id: u64,
    /// The name.
    pub name: String,
}

/// The stage id of won deals in every pipeline (amoCRM API v4 reference, "pipelines").
pub(super) const WON: u64 = 142;
/// The stage id of lost deals in every pipeline.
pub(super) const LOST: u64 = 143;

impl Default for Settings {
    /// The account of the recorded samples in `tests/data/amocrm`.
    fn default() -> Self {
        let stage =
            |id, name: &str, color: &str, sort| Stage { id, name: name.to_owned(), color: color.to_owned(), sort };
        let stages = vec![
            stage(61_000_001, "Неразобранное", "#c1c1c1", 10),
            stage(61_000_002, "Первичный контакт", "#99ccff", 20),
            stage(61_000_003, "Договор", "#ffff99", 30),
            stage(WON, "Успешно реализовано", "#CCFF66", 10_000),
            stage(LOST, "Закрыто и не реализовано", "#D5D8DB", 11_000),
        ];
        Self {
            account_id: 31_000_001,
            subdomain: "tambourtest".to_owned(),
            currency: "RUB".to_owned(),
            amocrm_token: "sandbox-amocrm-token".to_owned(),
            pipelines: vec![Pipeline { id: 7_100_001, name: "Воронка".to_owned(), stages }],
            users: vec![User { id: 9_000_001, name: "Тест Менеджер".to_owned() }],
            shop_token: "sandbox-shop-token".to_owned(),
            seed: 1,
        }
    }
}

impl Settings {
    /// The user who owns the token; 0, the robot, when there are no users.
    pub(super) fn acting_user(&self) -> u64 {
        self.users.first().map_or(0, |user| user.id)
    }

    pub(super) fn is_user(&self, id: u64) -> bool {
        self.users.iter().any(|user| user.id == id)
    }

    pub(super) fn pipeline(&self, id: u64) -> Option<&Pipeline> {
        self.pipelines.iter().find(|pipeline| pipeline.id == id)
    }
}

impl Pipeline {
    pub(super) fn has(&self, stage: u64) -> bool {
        self.stages.iter().any(|s| s.id == stage)
    }

    /// Where a new deal starts: the stage after the incoming leads.
    pub(super) fn first_stage(&self) -> u64 {
        self.stages.get(1).or_else(|| self.stages.first()).map_or(WON, |stage| stage.id)
    }
}
