//! The numbers of the page, as tables.

use super::markup::Element;
use crate::bench::numbers::{NONE, limit, measured, percent, range, with_unit};
use crate::bench::results::{Cpu, Figure, Group, Percentiles, Results, Row, Verdict};

type Pick<T> = fn(&T) -> f64;
const LATENCY: [(&str, Pick<Percentiles>); 5] = [
    ("p50", |latency| latency.p50),
    ("p90", |latency| latency.p90),
    ("p99", |latency| latency.p99),
    ("p99.9", |latency| latency.p999),
    ("max", |latency| latency.max),
];
const CPU: [(&str, Pick<Cpu>); 4] = [
    ("segstock", |cpu| cpu.service),
    ("Redis", |cpu| cpu.redis),
    ("PostgreSQL", |cpu| cpu.postgres),
    ("generator", |cpu| cpu.generator),
];
/// Columns beside the name: answers with their spread, latency, processor time, share.
const COLUMNS: usize = 2 + LATENCY.len() + CPU.len() + 1;

/// The figures to reach, with what was reached.
pub(super) fn figures(figures: &[Figure]) -> Element {
    let headings = ["figure", "measured", "at least", "then", "verdict"];
    let head = Element::new("tr").with_all(headings.map(|heading| heading_of("col", heading)));
    let row = |figure: &Figure| {
        let spread = format!("{}, {} samples", range(&figure.value), figure.value.samples);
        let value = Element::with_text("strong", with_unit(&measured(figure.value.median), &figure.unit));
        let single = figure.value.samples < 2;
        let spread = (!single).then(|| Element::with_text("small", spread));
        Element::new("tr")
            .with(heading_of("row", &figure.name))
            .with(Element::new("td").with(value).with_all(spread))
            .with(cell(limit(figure, figure.at_least)).set("data-heading", "at least"))
            .with(cell(limit(figure, figure.then)).set("data-heading", "then"))
            .with(Element::new("td").with(verdict(figure.verdict())))
    };
    let body = Element::new("tbody").with_all(figures.iter().map(row));
    scrolling("Figures", Element::new("table").class("figures").with(Element::new("thead").with(head)).with(body))
}

/// The word says it, the circle shows how much of it, and the colour only helps.
fn verdict(verdict: Verdict) -> Element {
    let (class, circle) = match verdict {
        Verdict::Reached => ("verdict reached", "●"),
        Verdict::AtLeast => ("verdict at-least", "◐"),
        Verdict::Missed => ("verdict missed", "○"),
    };
    let circle = Element::with_text("span", circle).set("aria-hidden", "true");
    Element::new("span").class(class).with(circle).text(format_args!(" {verdict}"))
}

/// Every row with every number, by group.
pub(super) fn rows(results: &Results) -> Element {
    let across = |columns: usize, text: &str| heading_of("colgroup", text).set("colspan", columns);
    let first = Element::new("tr")
        .with(heading_of("col", "row").set("rowspan", 2))
        .with(across(2, "answers a second"))
        .with(across(LATENCY.len(), "an answer took, in ms"))
        .with(across(CPU.len(), "an order cost, in µs of processor time"))
        .with(heading_of("col", "generator’s share").set("rowspan", 2));
    let names =
        ["median", "low–high"].into_iter().chain(LATENCY.map(|(name, _)| name)).chain(CPU.map(|(name, _)| name));
    let second = Element::new("tr").with_all(names.map(|name| heading_of("col", name)));
    let measured_groups = Group::ALL.into_iter().filter(|group| results.rows_of(*group).next().is_some());
    let table = Element::new("table")
        .class("rows")
        .with(Element::new("thead").with(first).with(second))
        .with_all(measured_groups.map(|group| rows_of(results, group)));
    scrolling("All rows", table)
}

fn rows_of(results: &Results, group: Group) -> Element {
    let title = heading_of("rowgroup", &group.to_string());
    let rest = Element::new("td").set("colspan", COLUMNS);
    Element::new("tbody")
        .with(Element::new("tr").class("group").with(title).with(rest))
        .with_all(results.rows_of(group).map(row))
}

fn row(row: &Row) -> Element {
    let note = row.note.as_ref().map(|note| Element::with_text("small", note));
    Element::new("tr")
        .with(heading_of("row", &row.name).with_all(note))
        .with(cell(measured(row.orders_per_second.median)))
        .with(cell(range(&row.orders_per_second)))
        .with_all(numbers(row.latency_ms.as_ref(), &LATENCY))
        .with_all(numbers(row.cpu_us_per_order.as_ref(), &CPU))
        .with(cell(percent(row.generator_share)))
}

fn numbers<T>(of: Option<&T>, columns: &[(&str, Pick<T>)]) -> impl Iterator<Item = Element> {
    columns.iter().map(move |(_, pick)| cell(of.map_or_else(|| NONE.to_owned(), |it| measured(pick(it)))))
}

fn cell(text: impl std::fmt::Display) -> Element {
    Element::with_text("td", text)
}

fn heading_of(scope: &str, text: &str) -> Element {
    Element::with_text("th", text).set("scope", scope)
}

/// A table that is wider than the window moves by itself, also with the keyboard.
fn scrolling(name: &str, table: Element) -> Element {
    Element::new("div").class("scrolling").set("role", "region").set("aria-label", name).set("tabindex", 0).with(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    #[test]
    fn every_verdict_has_its_word_and_its_circle() {
        let html = figures(&sample::results().figures).to_string();
        let count = |said: &str| html.matches(said).count();
        assert_eq!(count(r#"<span class="verdict reached"><span aria-hidden="true">●</span> reached</span>"#), 2);
        assert_eq!(count(r#"<span class="verdict at-least"><span aria-hidden="true">◐</span> at least</span>"#), 1);
        assert_eq!(count(r#"<span class="verdict missed"><span aria-hidden="true">○</span> missed</span>"#), 1);
    }

    #[test]
    fn a_figure_shows_what_was_measured_and_what_was_wanted() {
        let html = figures(&sample::results().figures).to_string();
        let cells = "<td><strong>26.4 ms</strong><small>24.6–27.5, 5 samples</small></td>\
            <td data-heading=\"at least\">≤ 20 ms</td><td data-heading=\"then\">≤ 10 ms</td>";
        assert!(html.contains(cells), "{html}");
    }

    #[test]
    fn every_row_is_there_with_all_its_columns() {
        let results = sample::results();
        let html = rows(&results).to_string();
        for row in &results.rows {
            let begins = format!("<tr><th scope=\"row\">{}<", row.name);
            let (_, rest) = html.split_once(&begins).unwrap_or_else(|| panic!("{}", row.name));
            let cells = &rest[..rest.find("</tr>").unwrap()];
            assert_eq!(cells.matches("<td").count(), COLUMNS, "{cells}");
        }
        let durable = "<td>21,480</td><td>19,976–22,339</td><td>5.59</td><td>10.6</td><td>19.0</td><td>39.1</td>\
            <td>83.8</td><td>31.2</td><td>2.81</td><td>25.0</td><td>14.0</td><td>42 %</td>";
        assert!(html.contains(durable), "{html}");
        assert!(html.contains("last units<small>the last 1,000 units took 0.41 s</small></th>"), "{html}");
    }

    #[test]
    fn only_groups_with_rows_have_a_heading() {
        let mut results = sample::results();
        results.rows.retain(|row| row.group == Group::Batch);
        assert_eq!(rows(&results).to_string().matches("rowgroup").count(), 1);
    }
}
