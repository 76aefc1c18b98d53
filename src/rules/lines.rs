//! The order's lines as the text of one CRM note.

use crate::config::Language;
use crate::rules::order::{Order, OrderLine};

/// More lines than this are counted, not listed: nobody reads them in a note.
const LINES_MAX: usize = 100;
/// A longer title, variant or article number is cut.
const FIELD_CHARS_MAX: usize = 100;
/// No further line is listed beyond this; amoCRM publishes no limit of a note.
const NOTE_CHARS_MAX: usize = 12_000;

/// Lists what was bought, one line each, then the total.
///
/// ```text
/// Заказ #1042
/// 1. Чай «Утро», 250 г (TEA-250): 2 × 1290.00
/// 2. Подарочная упаковка: 1 × 2000.00
/// Итого: 4980.00 RUB
/// ```
pub fn lines_note(order: &Order, language: Language) -> String {
    let words = words(language);
    let mut note = format!("{} {}", words.order, cut(&order.name)).trim_end().to_owned();
    let mut chars = 0;
    let mut listed = 0;
    for line in order.lines.iter().take(LINES_MAX) {
        let text = format!("\n{}. {}", listed + 1, line_text(line));
        chars += text.chars().count();
        if chars > NOTE_CHARS_MAX {
            break;
        }
        note.push_str(&text);
        listed += 1;
    }
    match order.lines.len() - listed {
        _ if order.lines_cut => note.push_str(words.and_others),
        0 => {}
        hidden => note.push_str(&words.and_more.replace("{}", &hidden.to_string())),
    }
    format!("{note}\n{}: {} {}", words.total, order.total, order.currency)
}

struct Words {
    order: &'static str,
    and_more: &'static str,
    and_others: &'static str,
    total: &'static str,
}

fn words(language: Language) -> Words {
    match language {
        Language::Ru => {
            Words {
                order: "Заказ", and_more: "\n…и ещё {}", and_others: "\n…и другие позиции", total: "Итого"
            }
        }
        Language::En => {
            Words { order: "Order", and_more: "\n…and {} more", and_others: "\n…and other lines", total: "Total" }
        }
    }
}

fn line_text(line: &OrderLine) -> String {
    let variant = if line.variant.is_empty() { String::new() } else { format!(", {}", cut(&line.variant)) };
    let sku = if line.sku.is_empty() { String::new() } else { format!(" ({})", cut(&line.sku)) };
    let price = line.price.map(|price| format!(" × {price}")).unwrap_or_default();
    format!("{}{variant}{sku}: {}{price}", cut(&line.title), line.quantity)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(FIELD_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::samples;

    fn with_lines(count: usize) -> Order {
        let mut order = samples::order();
        order.lines = order.lines.iter().cycle().take(count).cloned().collect();
        order
    }

    #[test]
    fn the_note_lists_lines_and_total() {
        let expected = "Заказ #1042\n\
            1. Чай «Утро», 250 г / листовой (TEA-УТРО-250): 2 × 1290.00\n\
            2. Подарочная упаковка: 1 × 2000.00\n\
            Итого: 4980.00 RUB";
        assert_eq!(lines_note(&samples::order(), Language::Ru), expected);
        assert_eq!(lines_note(&with_lines(0), Language::En), "Order #1042\nTotal: 4980.00 RUB");
    }

    #[test]
    fn the_note_is_bounded() {
        let tail = |order: &Order, language| {
            lines_note(order, language).lines().rev().nth(1).map(str::to_owned).unwrap_or_default()
        };
        assert!(tail(&with_lines(100), Language::Ru).starts_with("100. "));
        assert_eq!(tail(&with_lines(103), Language::Ru), "…и ещё 3");
        assert_eq!(tail(&with_lines(103), Language::En), "…and 3 more");
        let cut = Order { lines_cut: true, ..with_lines(100) };
        assert_eq!(tail(&cut, Language::Ru), "…и другие позиции");
        assert_eq!(tail(&cut, Language::En), "…and other lines");
        let mut wide = with_lines(100);
        wide.lines.iter_mut().for_each(|line| line.title = "👩‍👩‍👧".repeat(1000));
        wide.lines.iter_mut().for_each(|line| line.variant = "𝐏".repeat(1000));
        let note = lines_note(&wide, Language::Ru);
        assert!(note.chars().count() < NOTE_CHARS_MAX + 200, "{}", note.chars().count());
        assert!(note.contains("\n…и ещё "));
    }

    proptest! {
        #[test]
        fn any_order_gives_a_clean_note(body in samples::spoiled(samples::shopify("orders-create.json"))) {
            if let Ok(order) = Order::from_webhook(&body) {
                let note = lines_note(&order, Language::Ru);
                prop_assert!(note.chars().all(|letter| letter == '\n' || !letter.is_control()));
            }
        }
    }
}
