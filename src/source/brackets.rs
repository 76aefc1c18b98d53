//! Form bodies with PHP's bracket keys: `leads[status][0][id]=7`.
//!
//! Written for bodies that `http_build_query` made and strangers may have
//! touched. Where shapes collide, everything that can be kept is kept, and each
//! loss is a [`Problem`] with its path. In short:
//!
//! - all values are texts; brackets count percent-encoded or plain;
//! - an index is a key like any other, so `[999999999]` costs one entry; keys
//!   `0`, `1`, `2`... without a hole make an array, all else an object;
//! - `[]` takes the index after the highest one; of two equal keys the last wins;
//! - text and members under one name: the members are kept, the text is a problem;
//! - bytes of a value that are not UTF-8 become U+FFFD, which is a problem too;
//! - a key that cannot be read costs its pair; over a limit on pairs or lists
//!   reading stops.
//!
//! Not as PHP does it: blanks and dots in names stay as they are.
//!
//! Pairs and lists are bounded so that a body at its size limit takes some tens
//! of megabytes at most; depth is bounded so that no walk overflows the stack.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::source::fingerprint::fingerprint;

/// Pairs that are read; a body of 8 MiB with keys of usual length holds fewer.
pub const PAIRS_MAX: usize = 100_000;

/// Objects and arrays that are made; a bulk change of 500 leads makes about 30,000.
pub const LISTS_MAX: usize = 50_000;

/// Names in one key: seven are seen, `leads[status][0][custom_fields][0][values][0][value]` being one.
pub const DEPTH_MAX: usize = 16;

/// A longer key is skipped.
pub const KEY_BYTES_MAX: usize = 1024;

/// A longer name or id counts as not plain.
const PLAIN_BYTES_MAX: usize = 100;

/// What stands in a path for a name that is not plain.
const NAME_HIDDEN: &str = "?";

const TOO_MUCH: &str = "the body holds more than can be read; what follows is not read";

/// A body as a tree, with what could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Names to texts, arrays and objects.
    pub tree: Map<String, Value>,
    /// What was lost and why; empty for what the sender makes.
    pub problems: Vec<Problem>,
    /// SHA-256 over the pairs sorted by key, cut to 16 bytes: equal for bodies
    /// that differ only in the order of keys or in how they are encoded. Over
    /// the body as it came when pairs were left out or bytes replaced.
    pub digest: [u8; 16],
}

/// Something in a body that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path, `leads[status][3]`; names that are not plain show as `?`.
    pub at: String,
    /// Why, without the content itself.
    pub why: &'static str,
}

/// Whether a name or id is plain: letters, digits, `-` and `_`, the first a
/// letter, digit or `_`.
///
/// Plain texts are fit for paths, kinds and addresses; anything else may hold
/// personal data or be an attack.
pub fn is_plain(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= PLAIN_BYTES_MAX
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'-')
}

/// A name as paths show it.
pub fn shown(name: &str) -> &str {
    if is_plain(name) { name } else { NAME_HIDDEN }
}

/// Reads a form body; whatever it holds, there is a form.
pub fn parse(body: &[u8]) -> Form {
    let mut pairs: Vec<_> = form_urlencoded::parse(body).take(PAIRS_MAX + 1).collect();
    let mut is_exact = !pairs.iter().any(|(key, value)| is_lossy(key) || is_lossy(value));
    let mut problems = Vec::new();
    let mut root = Node::default();
    let mut lists = 0;
    for (n, (key, value)) in pairs.iter().enumerate() {
        if n == PAIRS_MAX || lists > LISTS_MAX {
            problems.push(Problem { at: "body".to_owned(), why: TOO_MUCH });
            is_exact = false;
            break;
        }
        let put = split(key).and_then(|segments| root.put(&segments, value, &mut lists));
        if let Err(why) = put {
            problems.push(Problem { at: shown(key.split('[').next().unwrap_or_default()).to_owned(), why });
        }
    }
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    let digest = if is_exact { digest_of_pairs(&pairs) } else { fingerprint(Sha256::new_with_prefix(body)) };
    let tree = root.into_object(&mut String::new(), &mut problems);
    Form { tree, problems, digest }
}

/// One name of a key.
enum Segment<'a> {
    /// `[]`.
    Next,
    Name(&'a str),
}

/// The names of a key: `a[b][]` is `a`, `b` and the next index.
fn split(key: &str) -> Result<Vec<Segment<'_>>, &'static str> {
    if key.len() > KEY_BYTES_MAX {
        return Err("a key is too long");
    }
    if is_lossy(key) {
        return Err("a key holds bytes that are not UTF-8");
    }
    let (base, mut rest) = key.split_at(key.find('[').unwrap_or(key.len()));
    if base.is_empty() {
        return Err("a pair has no name");
    }
    let mut segments = vec![Segment::Name(base)];
    while !rest.is_empty() {
        let inner = rest.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let Some((name, after)) = inner else { return Err("the brackets of a key do not match") };
        if segments.len() == DEPTH_MAX {
            return Err("a key is too deep");
        }
        segments.push(if name.is_empty() { Segment::Next } else { Segment::Name(name) });
        rest = after;
    }
    Ok(segments)
}

/// A member's key; indexes sort by value and before names.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Index(u64),
    Name(String),
}

impl Slot {
    fn of(name: &str) -> Self {
        index(name).map_or_else(|| Self::Name(name.to_owned()), Self::Index)
    }

    fn into_name(self) -> String {
        match self {
            Self::Index(n) => n.to_string(),
            Self::Name(name) => name,
        }
    }
}

/// The number of a canonical decimal; `007` is a name.
pub(super) fn index(name: &str) -> Option<u64> {
    name.parse().ok().filter(|n: &u64| n.to_string() == name)
}

/// A value while the body is read.
#[derive(Default)]
struct Node {
    text: Option<String>,
    members: BTreeMap<Slot, Node>,
}

impl Node {
    /// Puts a text under a key and counts the lists that were made for it.
    fn put(&mut self, segments: &[Segment<'_>], text: &str, lists: &mut usize) -> Result<(), &'static str> {
        let mut node = self;
        for segment in segments {
            *lists += usize::from(node.members.is_empty());
            let slot = match segment {
                Segment::Name(name) => Slot::of(name),
                Segment::Next => Slot::Index(node.next_index().ok_or("a list has no further index")?),
            };
            node = node.members.entry(slot).or_default();
        }
        node.text = Some(text.to_owned());
        Ok(())
    }

    fn next_index(&self) -> Option<u64> {
        match self.members.range(..=Slot::Index(u64::MAX)).next_back() {
            Some((Slot::Index(highest), _)) => highest.checked_add(1),
            _ => Some(0),
        }
    }

    /// Recurses at most `DEPTH_MAX` deep.
    fn into_value(self, at: &mut String, problems: &mut Vec<Problem>) -> Value {
        if let Some(text) = &self.text {
            if !self.members.is_empty() {
                problems.push(Problem { at: at.clone(), why: "a text stands where members are; it is left out" });
            } else if is_lossy(text) {
                problems.push(Problem { at: at.clone(), why: "bytes that are not UTF-8 were replaced" });
            }
        }
        if self.members.is_empty() {
            return Value::String(self.text.unwrap_or_default());
        }
        let is_array = self.members.keys().zip(0..).all(|(slot, n)| *slot == Slot::Index(n));
        if !is_array {
            return Value::Object(self.into_object(at, problems));
        }
        let member = |(n, node): (usize, Self)| within(at, &n.to_string(), |at| node.into_value(at, problems));
        Value::Array(self.members.into_values().enumerate().map(member).collect())
    }

    fn into_object(self, at: &mut String, problems: &mut Vec<Problem>) -> Map<String, Value> {
        let member = |(slot, node): (Slot, Self)| {
            let name = slot.into_name();
            let value = within(at, &name, |at| node.into_value(at, problems));
            (name, value)
        };
        self.members.into_iter().map(member).collect()
    }
}

/// Runs `inner` with the path one name longer.
fn within<T>(at: &mut String, name: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let len = at.len();
    let name = shown(name);
    if len == 0 {
        at.push_str(name);
    } else {
        at.extend(["[", name, "]"]);
    }
    let result = inner(at);
    at.truncate(len);
    result
}

/// Decoding leaves U+FFFD in place of bad bytes; a sender's own U+FFFD tells of the same loss.
fn is_lossy(text: &str) -> bool {
    text.contains(char::REPLACEMENT_CHARACTER)
}

/// Lengths go in too, so no two lists of pairs run into one.
fn digest_of_pairs<T: AsRef<str>>(pairs: &[(T, T)]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for text in pairs.iter().flat_map(|(key, value)| [key.as_ref(), value.as_ref()]) {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    fingerprint(hash)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn problems(form: &Form) -> Vec<String> {
        form.problems.iter().map(|problem| format!("{}: {}", problem.at, problem.why)).collect()
    }

    fn check(body: &str, expected: Value, problem: Option<&str>) {
        let form = parse(body.as_bytes());
        assert_eq!(Value::Object(form.tree.clone()), expected, "{body}");
        assert_eq!(problems(&form), problem.into_iter().collect::<Vec<_>>(), "{body}");
    }

    #[test]
    fn keys_make_a_tree() {
        check("", json!({}), None);
        check("a=1&b=+%2B&c", json!({"a": "1", "b": " +", "c": ""}), None);
        check("a[b]=1&a[c][d]=2", json!({"a": {"b": "1", "c": {"d": "2"}}}), None);
        check("a%5Bb%5D=1&a[c]=2", json!({"a": {"b": "1", "c": "2"}}), None);
        check("a[0]=x&a[1]=y", json!({"a": ["x", "y"]}), None);
        check("a[1]=y&a[0]=x", json!({"a": ["x", "y"]}), None);
        check("a[]=x&a[]=y", json!({"a": ["x", "y"]}), None);
        check("a[][b]=x&a[][b]=y", json!({"a": [{"b": "x"}, {"b": "y"}]}), None);
        check("a[5]=x&a[]=y&a[n]=z&a[]=w", json!({"a": {"5": "x", "6": "y", "7": "w", "n": "z"}}), None);
        check("a[7]=x&a[007]=y&a[-1]=z", json!({"a": {"7": "x", "007": "y", "-1": "z"}}), None);
        check("a=1&a=2&b[c]=1&b[c]=2", json!({"a": "2", "b": {"c": "2"}}), None);
        check("a[b[c]=1", json!({"a": {"b[c": "1"}}), None);
        check("%D0%B0[%D0%B1]=%F0%9F%98%80", json!({"а": {"б": "😀"}}), None);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_rest_is_kept() {
        let text = "a text stands where members are; it is left out";
        let brackets = "the brackets of a key do not match";
        let no_name = "a pair has no name";
        check("a=1&a[b]=2&c=3", json!({"a": {"b": "2"}, "c": "3"}), Some(&format!("a: {text}")));
        check("a[b][0]=2&a[b]=1", json!({"a": {"b": ["2"]}}), Some(&format!("a[b]: {text}")));
        check("a[0=1&b=2", json!({"b": "2"}), Some(&format!("a: {brackets}")));
        check("a[0]x[1]=1&b=2", json!({"b": "2"}), Some(&format!("a: {brackets}")));
        check("[a]=1&b=2", json!({"b": "2"}), Some(&format!("?: {no_name}")));
        check("=1&b=2", json!({"b": "2"}), Some(&format!("?: {no_name}")));
        check(
            "a[0]=%CA%F0&b=2",
            json!({"a": ["\u{fffd}\u{fffd}"], "b": "2"}),
            Some("a[0]: bytes that are not UTF-8 were replaced"),
        );
        check("a[%FF]=1&b=2", json!({"b": "2"}), Some("a: a key holds bytes that are not UTF-8"));
        let last = u64::MAX;
        check(
            &format!("a[{last}]=1&a[]=2"),
            json!({"a": {last.to_string(): "1"}}),
            Some("a: a list has no further index"),
        );
    }

    /// Names come from strangers, so a path shows only the plain ones.
    #[test]
    fn paths_show_no_personal_data() {
        check(
            "Anna+Test[a]=1&Anna+Test=2",
            json!({"Anna Test": {"a": "1"}}),
            Some("?: a text stands where members are; it is left out"),
        );
        check(
            "a[+7 900][b]=%FF",
            json!({"a": {" 7 900": {"b": "\u{fffd}"}}}),
            Some("a[?][b]: bytes that are not UTF-8 were replaced"),
        );
        for (name, expected) in
            [("a", true), ("_links", true), ("0-a", true), ("", false), ("-", false), ("é", false), ("a/b", false)]
        {
            assert_eq!(is_plain(name), expected, "{name}");
        }
        assert!(!is_plain(&"a".repeat(PLAIN_BYTES_MAX + 1)));
    }

    #[test]
    fn limits_stop_what_is_too_much() {
        let deepest = format!("a{}=1", "[x]".repeat(DEPTH_MAX - 1));
        assert_eq!(problems(&parse(deepest.as_bytes())), [""; 0]);
        check(&format!("a{}=1&b=2", "[x]".repeat(DEPTH_MAX)), json!({"b": "2"}), Some("a: a key is too deep"));
        check(&format!("{}=1&b=2", "a".repeat(KEY_BYTES_MAX + 1)), json!({"b": "2"}), Some("?: a key is too long"));

        let all = "a[]=1&".repeat(PAIRS_MAX);
        assert_eq!(problems(&parse(all.as_bytes())), [""; 0]);
        let over = parse(format!("{all}b=1").as_bytes());
        assert_eq!(over.tree["a"].as_array().map(Vec::len), Some(PAIRS_MAX));
        assert_eq!(problems(&over), [format!("body: {TOO_MUCH}")]);
        assert_ne!(over.digest, parse(format!("{all}b=2").as_bytes()).digest);

        let mut lists = String::new();
        for n in 0..LISTS_MAX {
            write!(lists, "a{n}[x][x]=1&").expect("a text takes all");
        }
        let over = parse(lists.as_bytes());
        assert_eq!(over.tree.len(), LISTS_MAX / 2);
        assert_eq!(problems(&over), [format!("body: {TOO_MUCH}")]);
    }

    #[test]
    fn a_digest_is_of_pairs_and_not_of_their_spelling() {
        let equal = |one: &str, other: &str, expected: bool| {
            assert_eq!(parse(one.as_bytes()).digest == parse(other.as_bytes()).digest, expected, "{one} {other}");
        };
        equal("a[b]=1&c=2", "c=2&a%5Bb%5D=%31&", true);
        equal("a=1&b=2", "a=2&b=1", false);
        equal("a=1&b=2", "a=1", false);
        equal("a=1b&c=2", "a=1&bc=2", false);
        equal("a[]=1&a[]=2", "a[]=2&a[]=1", false);
        equal("a=%FF", "a=%FE", false);
        equal("a=%FF", "a=%EF%BF%BD", false);
    }

    fn depth(value: &Value) -> usize {
        1 + match value {
            Value::Array(members) => members.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => members.values().map(depth).max().unwrap_or(0),
            _ => return 0,
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..400)) {
            parse(&body);
        }

        #[test]
        fn no_key_panics(body in r"([ab%F]{0,2}(\[[01a%\[-]{0,3}\]?){0,20}=[a%F0]{0,3}&?){0,12}") {
            let form = parse(body.as_bytes());
            prop_assert!(depth(&Value::Object(form.tree)) <= DEPTH_MAX);
        }

        #[test]
        fn pairs_with_different_keys_may_come_in_any_order(
            sorted in proptest::collection::btree_set(r"[ab](\[[01c]\]){0,3}", 0..12),
        ) {
            let body = |keys: &mut dyn Iterator<Item = &String>| keys.fold(String::new(), |body, key| body + key + "=1&");
            let (one, other) = (body(&mut sorted.iter()), body(&mut sorted.iter().rev()));
            prop_assert_eq!(parse(one.as_bytes()), parse(other.as_bytes()));
        }
    }
}
