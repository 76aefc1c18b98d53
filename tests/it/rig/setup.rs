//! The configuration of a rig: one shop, one amoCRM account, a deal and a note task.

use tambour::config::{self, Config};

/// The shop of the recorded deliveries.
pub(crate) const SHOP: &str = "tambour-test.myshopify.com";
/// The secret that the recorded deliveries are signed with.
pub(crate) const SHOP_SECRET: &str = "shpss_test_secret";
/// Where deals begin.
pub(crate) const STAGE_NEW: u64 = 61_000_002;
/// Where the note is written.
pub(crate) const STAGE_CONTRACT: u64 = 61_000_003;

/// What differs between scenarios; the rest is as in `packaging/tambour.toml`.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    /// Names that are gone for good, as TOML.
    pub(crate) retire: &'static str,
    /// The name of the shop's source.
    pub(crate) shop_name: &'static str,
    /// The name of the CRM as a target.
    pub(crate) target_name: &'static str,
    /// Pauses between attempts, as TOML.
    pub(crate) pauses: &'static str,
    /// Further lines of `[sources.shop]`.
    pub(crate) shop: &'static str,
    /// Further lines of `[targets.crm]`.
    pub(crate) target: &'static str,
    /// The name of the deal task.
    pub(crate) deal_task: &'static str,
    /// The stage of new deals.
    pub(crate) deal_stage: u64,
    /// Further lines of `[tasks.deal]`.
    pub(crate) deal: &'static str,
    /// The template of notes.
    pub(crate) note_text: &'static str,
    /// The CRM fields that exist, by code.
    pub(crate) fields: &'static [&'static str],
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            retire: "[]",
            shop_name: "shop",
            target_name: "crm",
            pauses: r#"["1m", "5m", "15m", "1h"]"#,
            shop: "",
            target: "",
            deal_task: "deal",
            deal_stage: STAGE_NEW,
            deal: "",
            note_text: "Договор по сделке {{ lead.name }}",
            fields: &["TAMBOUR_ID", "TAMBOUR_VERSION", "TAMBOUR_TOTAL"],
        }
    }
}

/// A source with access for fresh reads.
pub(crate) const SHOP_API: &str = r#"api = { version = "2026-10", token = { env = "SHOP_TOKEN" } }"#;

impl Setup {
    /// Writes the file, and reads it as `serve` does.
    pub(crate) fn load(&self) -> Config {
        let folder = tempfile::tempdir().unwrap();
        for name in ["fullchain.pem", "privkey.pem", "tambour.toml"] {
            std::fs::write(folder.path().join(name), self.text()).unwrap();
        }
        config::load(&folder.path().join("tambour.toml"), &environment).unwrap_or_else(|problems| panic!("{problems}"))
    }

    fn text(&self) -> String {
        let Self {
            retire, shop_name, target_name, pauses, shop, target, deal_task, deal_stage, deal, note_text, ..
        } = self;
        format!(
            r#"
data = "data"
pauses = {pauses}
retire = {retire}
[listener]
address = "127.0.0.1:0"
certificate = "fullchain.pem"
key = "privkey.pem"
[sources.{shop_name}]
kind = "shopify"
shops = ["{SHOP}"]
secrets = [{{ label = "app", env = "SHOP_SECRET" }}]
{shop}
[sources.crm]
kind = "amocrm"
account_id = 31000001
address_token = {{ env = "ADDRESS_TOKEN" }}
[targets.{target_name}]
kind = "amocrm"
url = "https://tambourtest.amocrm.ru"
account_id = 31000001
token = {{ env = "CRM_TOKEN" }}
responsible_user_id = 9000001
currency = "RUB"
{target}
[tasks.{deal_task}]
kind = "deal"
target = "{target_name}"
pipeline_id = 7100001
status_id = {deal_stage}
name = "Заказ {{{{ order.name }}}}"
{deal}
[tasks.note]
kind = "note"
target = "{target_name}"
on_return = "keep"
valid_in = [{STAGE_CONTRACT}]
text = "{note_text}"
[[routes]]
source = "{shop_name}"
events = ["orders/create", "orders/updated", "orders/paid", "orders/cancelled"]
task = "{deal_task}"
since = "2020-01-01T00:00:00Z"
[[routes]]
source = "crm"
events = ["leads.status", "leads.update"]
where = {{ status_id = {STAGE_CONTRACT}, pipeline_id = 7100001 }}
task = "note"
since = "2020-01-01T00:00:00Z"
"#
        )
    }
}

fn environment(name: &str) -> Option<String> {
    let value = match name {
        "SHOP_SECRET" => SHOP_SECRET,
        "SHOP_TOKEN" => "sandbox-shop-token",
        "ADDRESS_TOKEN" => "0123456789abcdef0123",
        "CRM_TOKEN" => "sandbox-amocrm-token",
        _ => return None,
    };
    Some(value.to_owned())
}
