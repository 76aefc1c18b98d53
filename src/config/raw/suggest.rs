//! What a mistyped word was meant to be.

/// Up to so many letters may be wrong, but never half of the word.
const DISTANCE_MAX: usize = 3;

/// ``did you mean `max_body`?``, when one of the known words is near.
pub(in crate::config) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let most = DISTANCE_MAX.min(word.chars().count() / 2);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= most)
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// `a`, `b` with their quotes, in the order given.
pub(in crate::config) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// How many letters must be added, removed or replaced (Levenshtein), row by row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for ((&to, &diagonal), &above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(from != to)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let check = |word, expected: Option<&str>| {
            let hint = did_you_mean(word, ["max_body", "kind", "answer_within"]);
            assert_eq!(hint, expected.map(|known| format!("did you mean `{known}`?")), "{word}");
        };
        check("max_bdy", Some("max_body"));
        check("maxbody", Some("max_body"));
        check("knid", Some("kind"));
        check("answer_withing", Some("answer_within"));
        check("secret", None);
        check("k", None);
        check("", None);
        assert_eq!(distance("заказ", "заказы"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
