//! How numbers are written for people.

use super::results::{Figure, Spread};

/// What stands where there is no number.
pub(super) const NONE: &str = "–";

/// A measured number with about three digits that mean something: `12,345`, `99.2`, `1.50`, `0.042`.
pub(super) fn measured(number: f64) -> String {
    if !number.is_finite() {
        return NONE.to_owned();
    }
    with_separators(&format!("{number:.*}", decimals(number)))
}

/// A chosen number, such as a limit or a tick, without digits that say nothing: `12,000`, `20`, `0.8`.
pub(super) fn chosen(number: f64) -> String {
    if !number.is_finite() {
        return NONE.to_owned();
    }
    let text = format!("{number:.*}", decimals(number) + 2);
    with_separators(text.trim_end_matches('0').trim_end_matches('.'))
}

/// The lowest and the highest; one sample has neither.
pub(super) fn range(spread: &Spread) -> String {
    if spread.samples < 2 {
        return NONE.to_owned();
    }
    format!("{}–{}", measured(spread.low), measured(spread.high))
}

/// A share as percent.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.0} %", share * 100.0) } else { NONE.to_owned() }
}

/// A number with its unit. The sign of a factor stands close, a word does not.
pub(super) fn with_unit(number: &str, unit: &str) -> String {
    match unit {
        "" | "×" => format!("{number}{unit}"),
        _ => format!("{number} {unit}"),
    }
}

/// One of the limits of a figure, and on which side of it is good.
pub(super) fn limit(figure: &Figure, limit: f64) -> String {
    let side = if figure.higher_is_better { '≥' } else { '≤' };
    format!("{side} {}", with_unit(&chosen(limit), &figure.unit))
}

/// A measured duration, in minutes where seconds would be many.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        return format!("{seconds:.0} s");
    }
    let minutes = (seconds / 60.0).floor();
    format!("{minutes:.0} min {:.0} s", (seconds - minutes * 60.0).floor())
}

/// The limits are where rounding would add a digit: 99.96 is 100, not 100.0.
fn decimals(number: f64) -> usize {
    match number.abs() {
        0.0 => 0,
        number if number >= 99.95 => 0,
        number if number >= 9.995 => 1,
        number if number >= 0.9995 => 2,
        number if number >= 0.09995 => 3,
        _ => 4,
    }
}

fn with_separators(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + number.len() / 3);
    for (position, character) in number.char_indices() {
        let begins_a_group = position < whole && (whole - position).is_multiple_of(3);
        if begins_a_group && text.ends_with(|before: char| before.is_ascii_digit()) {
            text.push(',');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_numbers_have_sensible_digits() {
        let cases = [
            (0.0, "0"),
            (0.00312, "0.0031"),
            (0.0421, "0.0421"),
            (0.4217, "0.422"),
            (0.9999, "1.00"),
            (1.5, "1.50"),
            (9.999, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1,000"),
            (12_345.6, "12,346"),
            (1_234_567.0, "1,234,567"),
            (-123_456.0, "-123,456"),
            (f64::NAN, "–"),
        ];
        for (number, text) in cases {
            assert_eq!(measured(number), text);
        }
    }

    #[test]
    fn chosen_numbers_have_no_idle_digits() {
        let cases =
            [(0.0, "0"), (0.8, "0.8"), (20.0, "20"), (0.985, "0.985"), (1_234.5, "1,234.5"), (0.1 + 0.2, "0.3")];
        for (number, text) in cases {
            assert_eq!(chosen(number), text);
        }
        assert_eq!(chosen(10_000.0), "10,000");
    }

    #[test]
    fn one_sample_has_no_range() {
        let spread = Spread { median: 5.0, low: 5.0, high: 5.0, samples: 1 };
        assert_eq!(range(&spread), "–");
        assert_eq!(range(&Spread { low: 998.0, high: 1_004.0, samples: 3, ..spread }), "998–1,004");
    }

    #[test]
    fn units_shares_and_durations() {
        assert_eq!(with_unit("1.5", "×"), "1.5×");
        assert_eq!(with_unit("20", "ms"), "20 ms");
        assert_eq!(with_unit("20", ""), "20");
        assert_eq!(percent(0.456), "46 %");
        assert_eq!(duration(59.6), "60 s");
        assert_eq!(duration(119.0), "119 s");
        assert_eq!(duration(725.9), "12 min 5 s");
    }
}
