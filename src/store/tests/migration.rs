//! How a record changes its shape: a made-up one in its second version.
//!
//! `tests/data/records/v1-card.hex` was written by the first version, `v2-card.hex`
//! by the second. A third version would add a `mod v2`, a variant and a step.

use serde::{Deserialize, Serialize};

use super::golden::hex;
use crate::store::record::{Malformed, Record, encode_version, whole};

/// The present shape: a card may have many phones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CardRecord {
    name: String,
    phones: Vec<String>,
}

/// The shape of the first files: one phone, empty for none.
mod v1 {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct CardRecord {
        pub(super) name: String,
        pub(super) phone: String,
    }

    impl From<CardRecord> for super::CardRecord {
        fn from(old: CardRecord) -> Self {
            let phones = Some(old.phone).filter(|phone| !phone.is_empty());
            Self { name: old.name, phones: phones.into_iter().collect() }
        }
    }
}

/// In the order in which they came: the index is the first byte on disk.
#[derive(Serialize, Deserialize)]
enum Versions {
    V1(v1::CardRecord),
    V2(CardRecord),
}

impl Record for CardRecord {
    const WHAT: &'static str = "cards";

    fn encode(&self) -> Result<Vec<u8>, Malformed> {
        encode_version::<Self>(&Versions::V2(self.clone()))
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(match whole::<Self, _>(bytes)? {
            Versions::V1(old) => old.into(),
            Versions::V2(card) => card,
        })
    }
}

fn card(phones: &[&str]) -> CardRecord {
    CardRecord { name: "Анна".to_owned(), phones: phones.iter().map(|&phone| phone.to_owned()).collect() }
}

#[test]
fn a_record_of_an_earlier_version_is_read_as_the_present_one() {
    assert_eq!(CardRecord::decode(&hex("v1-card")).unwrap(), card(&["+79000000001"]));
    let without = Versions::V1(v1::CardRecord { name: "Анна".to_owned(), phone: String::new() });
    assert_eq!(CardRecord::decode(&encode_version::<CardRecord>(&without).unwrap()).unwrap(), card(&[]));
}

#[test]
fn the_present_version_is_written_and_a_later_one_refused() {
    let present = card(&["+79000000001", "+79000000002"]);
    assert_eq!(present.encode().unwrap(), hex("v2-card"));
    assert_eq!(CardRecord::decode(&hex("v2-card")).unwrap(), present);
    let mut later = hex("v2-card");
    later[0] = 2;
    let mut longer = hex("v1-card");
    longer.push(0);
    for bytes in [later, longer] {
        let refused = CardRecord::decode(&bytes).unwrap_err();
        assert!(refused.to_string().starts_with("a record of cards is malformed"), "{refused}");
    }
}
