//! What is sent: made orders of a size, or the bodies of a file or folder.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::domain::Timestamp;
use crate::sandbox::{OrderLine, OrderSketch};

/// What is replayed must fit into memory beside the server.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Words of shop notes: text that compresses as people's text does.
const WORDS: [&str; 24] = [
    "доставка",
    "после",
    "обеда",
    "позвоните",
    "за",
    "час",
    "подъезд",
    "этаж",
    "домофон",
    "не",
    "работает",
    "подарок",
    "упаковать",
    "без",
    "чека",
    "courier",
    "please",
    "leave",
    "at",
    "the",
    "door",
    "размер",
    "синий",
    "или",
];

/// The bodies to send, one after another and again from the first.
pub(super) enum Bodies {
    /// Orders of about so many bytes, each with an id of its own.
    Made { bytes: usize, at: Timestamp },
    /// Recorded ones, with the time from the first to each if all have one.
    Recorded { bodies: Vec<Bytes>, offsets: Option<Vec<Duration>> },
}

impl Bodies {
    /// The body of the delivery with that number.
    pub(super) fn body(&self, number: usize) -> Bytes {
        match self {
            Self::Made { bytes, at } => made(number, *bytes, *at),
            Self::Recorded { bodies, .. } => {
                number.checked_rem(bodies.len()).and_then(|at| bodies.get(at)).cloned().unwrap_or_default()
            }
        }
    }

    /// When a delivery is due after the first; absent where nothing says so.
    pub(super) fn offset(&self, number: usize) -> Option<Duration> {
        match self {
            Self::Recorded { offsets: Some(offsets), .. } => offsets.get(number).copied(),
            Self::Recorded { offsets: None, .. } | Self::Made { .. } => None,
        }
    }

    /// Whether there are times to keep.
    pub(super) const fn is_timed(&self) -> bool {
        matches!(self, Self::Recorded { offsets: Some(_), .. })
    }

    /// Reads a file with one JSON body a line, or a folder with one a file.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut left = FILE_BYTES_MAX;
        let bodies = if path.is_dir() {
            let mut files = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            files.retain(|file| file.is_file());
            files.sort();
            files.iter().map(|file| read(file, &mut left).map(Bytes::from)).collect::<io::Result<Vec<_>>>()?
        } else {
            let whole = Bytes::from(read(path, &mut left)?);
            whole.split(|byte| *byte == b'\n').map(|line| whole.slice_ref(line.trim_ascii())).collect()
        };
        Self::recorded(bodies)
    }

    /// Bodies in the order of their times; those without one come first.
    fn recorded(mut bodies: Vec<Bytes>) -> io::Result<Self> {
        bodies.retain(|body| !body.trim_ascii().is_empty());
        if bodies.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is no body in it"));
        }
        let mut timed = Vec::with_capacity(bodies.len());
        for (number, body) in (1_usize..).zip(bodies) {
            let order: Value = serde_json::from_slice(&body)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("body {number}: {error}")))?;
            timed.push((time_of(&order), body));
        }
        timed.sort_by_key(|(at, _)| *at);
        let times: Option<Vec<Timestamp>> = timed.iter().map(|(at, _)| *at).collect();
        let offsets =
            times.map(|times| times.iter().map(|at| at.since(times.first().copied().unwrap_or(*at))).collect());
        Ok(Self::Recorded { bodies: timed.into_iter().map(|(_, body)| body).collect(), offsets })
    }
}

fn read(path: &Path, left: &mut u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(left.saturating_add(1)).read_to_end(&mut bytes)?;
    match left.checked_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) {
        Some(rest) => *left = rest,
        None => return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the bodies are more than 256 MiB together")),
    }
    Ok(bytes)
}

/// When a shop says that an order changed or was made.
fn time_of(order: &Value) -> Option<Timestamp> {
    let text = order.get("updated_at").or_else(|| order.get("created_at"))?.as_str()?;
    Some(Timestamp::from_millis(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
}

/// An order as a shop sends it: lines and a note fill it up to the size, or it is the smallest order.
fn made(number: usize, bytes: usize, at: Timestamp) -> Bytes {
    const LINE_BYTES: usize = 640;
    const BARE_BYTES: usize = 1400;
    let id = u64::try_from(number).unwrap_or_default().saturating_add(912_345_678_900_000_000);
    let mut dice = id;
    let mut order = OrderSketch::new(id, &format!("#{}", number.saturating_add(1000)), "4980.50", at);
    if bytes > BARE_BYTES {
        order.first_name = "Анна".to_owned();
        order.last_name = "Примерова".to_owned();
        order.phone = Some(format!("+7900{:07}", id % 10_000_000));
    }
    order.lines = (0..=bytes.saturating_sub(BARE_BYTES) / LINE_BYTES)
        .map(|_| OrderLine {
            title: words(&mut dice, 30),
            sku: word(&mut dice).to_owned(),
            quantity: 1,
            price: "1290.00".to_owned(),
        })
        .collect();
    let len = order.to_json().to_string().len();
    order.note = Some(words(&mut dice, bytes.saturating_sub(len)));
    order.to_json().to_string().into()
}

fn words(dice: &mut u64, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(word(dice));
        text.push(' ');
    }
    text
}

/// SplitMix64 picks a word.
fn word(dice: &mut u64) -> &'static str {
    *dice = dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*dice ^ (*dice >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let at = usize::try_from((mixed >> 32) % 24).unwrap_or_default();
    WORDS.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_secs(1_796_036_400);

    #[test]
    fn made_orders_are_as_long_as_asked_and_differ() {
        for bytes in [2048, 10_000, 200_000] {
            let (first, second) = (made(1, bytes, AT), made(2, bytes, AT));
            assert!(first.len() >= bytes && first.len() < bytes + 700, "{bytes}: {}", first.len());
            assert_ne!(first, second);
            let packed = zstd::bulk::compress(&first, 1).unwrap().len();
            assert!(packed * 20 > first.len() && packed * 10 < first.len() * 6, "{bytes}: {packed} of {}", first.len());
        }
        assert!(made(1, 0, AT).len() < 1400);
    }

    #[test]
    fn recorded_bodies_keep_their_times_if_all_have_one() {
        let body = |text: &'static str| Bytes::from_static(text.as_bytes());
        let (late, early) =
            (body(r#"{"updated_at":"2026-11-30T11:00:05+00:00"}"#), body(r#"{"created_at":"2026-11-30T11:00:00Z"}"#));
        let timed = Bodies::recorded(vec![late.clone(), body(" "), early.clone()]).unwrap();
        assert!(timed.is_timed());
        assert_eq!((timed.body(0), timed.body(1), timed.body(2)), (early.clone(), late.clone(), early.clone()));
        let offsets = [0, 1, 2].map(|number| timed.offset(number).map(|offset| offset.as_secs()));
        assert_eq!(offsets, [Some(0), Some(5), None]);
        let untimed = Bodies::recorded(vec![late, body("{}")]).unwrap();
        assert!(!untimed.is_timed());
        let refused = |bodies| Bodies::recorded(bodies).err().map(|error| error.to_string());
        assert_eq!(refused(vec![body(" ")]).as_deref(), Some("there is no body in it"));
        assert!(refused(vec![early, body("no")]).is_some_and(|why| why.starts_with("body 2: ")));
    }

    #[test]
    fn a_file_holds_a_body_a_line_and_a_folder_one_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jsonl");
        fs::write(&file, "{\"a\":1}\n\n{\"b\":2}\r\n").unwrap();
        let lines = Bodies::read(&file).unwrap();
        assert_eq!([0, 1, 2].map(|number| lines.body(number)), ["{\"a\":1}", "{\"b\":2}", "{\"a\":1}"]);
        fs::write(&file, "{\n\"a\":1}").unwrap();
        assert_eq!(Bodies::read(folder.path()).unwrap().body(5), "{\n\"a\":1}");
    }
}
