//! Webhook bodies as amoCRM sends them: PHP bracket keys, every value a text.

use bytes::Bytes;

use crate::sandbox::amocrm;
use crate::sandbox::settings::Settings;
use crate::sandbox::world::{Lead, World};

/// What a webhook says about one lead.
pub(super) enum LeadHook<'a> {
    /// It was made.
    Add,
    /// It changed.
    Update,
    /// It moved; the lead as it was.
    Status(&'a Lead),
    /// It was deleted.
    Delete,
}

impl LeadHook<'_> {
    const fn word(&self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Status(_) => "status",
            Self::Delete => "delete",
        }
    }

    /// The body, in the order of the recorded deliveries.
    pub(super) fn body(&self, settings: &Settings, world: &World, id: u64, lead: &Lead) -> Bytes {
        let mut pairs = vec![
            ("account[subdomain]".to_owned(), settings.subdomain.clone()),
            ("account[id]".to_owned(), settings.account_id.to_string()),
            ("account[_links][self]".to_owned(), format!("https://{}.amocrm.ru", settings.subdomain)),
        ];
        let item = format!("leads[{}][0]", self.word());
        let fields = self.fields(settings, world, id, lead);
        pairs.extend(fields.into_iter().map(|(key, value)| (format!("{item}{key}"), value)));
        Bytes::from(encode(&pairs))
    }

    fn fields(&self, settings: &Settings, world: &World, id: u64, lead: &Lead) -> Vec<(String, String)> {
        let pair = |key: &str, value: &dyn ToString| (format!("[{key}]"), value.to_string());
        if matches!(self, Self::Delete) {
            let fields = [("id", id), ("status_id", lead.status_id), ("pipeline_id", lead.pipeline_id)];
            return fields.map(|(key, value)| pair(key, &value)).into();
        }
        let mut fields = vec![
            pair("id", &id),
            pair("name", &lead.name),
            pair("status_id", &lead.status_id),
            pair("price", &lead.price()),
            pair("responsible_user_id", &lead.responsible_user_id),
            pair("last_modified", &lead.stamps.updated_at),
            pair("modified_user_id", &lead.stamps.updated_by),
            pair("created_user_id", &lead.stamps.created_by),
            pair("date_create", &lead.stamps.created_at),
            pair("pipeline_id", &lead.pipeline_id),
            pair("account_id", &settings.account_id),
        ];
        if let Self::Status(was) = self {
            fields.push(pair("old_status_id", &was.status_id));
            if was.pipeline_id != lead.pipeline_id {
                fields.push(pair("old_pipeline_id", &was.pipeline_id));
            }
        }
        fields.extend(amocrm::hook_values(world, &lead.fields));
        fields.push(pair("created_at", &lead.stamps.created_at));
        fields.push(pair("updated_at", &lead.stamps.updated_at));
        fields
    }
}

/// PHP's `http_build_query`: a space is `+`, all but letters, digits and `-_.` are escaped.
fn encode(pairs: &[(String, String)]) -> String {
    let encoded = pairs.iter().map(|(key, value)| format!("{}={}", escape(key), escape(value)));
    encoded.collect::<Vec<_>>().join("&")
}

fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_bodies_are_encoded_to_the_same_bytes() {
        for recorded in [
            include_str!("../../tests/data/amocrm/leads-status.txt"),
            include_str!("../../tests/data/amocrm/leads-update.txt"),
            include_str!("../../tests/data/amocrm/leads-add.txt"),
        ] {
            let pairs: Vec<_> = form_urlencoded::parse(recorded.as_bytes()).into_owned().collect();
            assert_eq!(encode(&pairs), recorded);
        }
    }
}
