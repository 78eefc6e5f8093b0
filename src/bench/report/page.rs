//! The page as a whole.

use super::charts::charts;
use super::markup::Element;
use super::tables;
use crate::bench::numbers::{duration, measured};
use crate::bench::results::{Group, Results, Row};

/// The results as one HTML file that needs nothing else: no script, no font, no image from elsewhere.
pub fn page(results: &Results) -> String {
    let title = format!("segstock {}: benchmark", results.version);
    let setting = |name: &str, content: &str| Element::new("meta").set("name", name).set("content", content);
    let head = Element::new("head")
        .with(Element::new("meta").set("charset", "utf-8"))
        .with(setting("viewport", "width=device-width, initial-scale=1"))
        .with(setting("color-scheme", "light dark"))
        .with(Element::with_text("title", &title))
        .with(Element::style(include_str!("style.css")));
    let main = Element::new("main").with(header(results)).with_all(sections(results));
    let html = Element::new("html").set("lang", "en").with(head).with(Element::new("body").with(main));
    format!("<!DOCTYPE html>\n{html}\n")
}

fn header(results: &Results) -> Element {
    let machine = &results.machine;
    let pace = if results.quick { "a quick run" } else { "a full run" };
    let began = results.started_at.format("%Y-%m-%d %H:%M UTC");
    let took = duration(results.took_seconds);
    let facts = [
        ("processor", format!("{}, {} cores", machine.processor, machine.cores)),
        ("memory", format!("{} GiB", measured(machine.memory_gib))),
        ("system", machine.system.clone()),
        ("stores", format!("{}, {}", machine.redis, machine.postgres)),
        ("storage", machine.storage.clone()),
    ];
    let fact =
        |(name, text)| Element::new("div").with(Element::with_text("dt", name)).with(Element::with_text("dd", text));
    let rough = "A quick run measures each row for a short time: its numbers are rough.";
    Element::new("header")
        .with(Element::with_text("h1", format_args!("segstock {}: benchmark", results.version)))
        .with(Element::with_text("p", format_args!("{began}, {pace} of {took}")).class("quiet"))
        .with_all(results.quick.then(|| Element::with_text("p", rough).class("rough")))
        .with(Element::new("dl").with_all(facts.map(fact)))
        .with(Element::new("pre").with(Element::with_text("code", &results.command)))
}

fn sections(results: &Results) -> impl Iterator<Item = Element> {
    let figures = (!results.figures.is_empty()).then(|| {
        let said = "The middle of the samples is what counts; the lowest and the highest stand below it.";
        section("Figures to reach", said, tables::figures(&results.figures))
    });
    let drawn = charts(results);
    let charts = (!drawn.is_empty()).then(|| {
        let items = drawn.into_iter().map(|charts| Element::new("div").class("charts").with_all(charts));
        let said = "Lines join the middle of the samples; whiskers reach from the lowest to the highest.";
        section("Charts", said, Element::new("div").with_all(items))
    });
    let mut last = results.rows_of(Group::Tail).peekable();
    let tail = last.peek().is_some().then(|| {
        let said = "When few units are left, orders meet segments that are empty.";
        section("The end of a sale", said, Element::new("ul").with_all(last.map(tail_row)))
    });
    let rows = (!results.rows.is_empty()).then(|| {
        let said = "Where the generator’s share is near 100 %, it was the limit itself, and not what it measured.";
        section("All rows", said, tables::rows(results))
    });
    [figures, charts, tail, rows].into_iter().flatten()
}

fn section(heading: &str, said: &str, shown: Element) -> Element {
    let said = Element::with_text("p", said).class("quiet");
    Element::new("section").with(Element::with_text("h2", heading)).with(said).with(shown)
}

fn tail_row(row: &Row) -> Element {
    let mut said = format!(": {} answers a second", measured(row.orders_per_second.median));
    if let Some(latency) = &row.latency_ms {
        said += &format!(", p50 {} ms, p99 {} ms", measured(latency.p50), measured(latency.p99));
    }
    if let Some(note) = &row.note {
        said += &format!("; {note}");
    }
    Element::new("li").with(Element::with_text("strong", &row.name)).text(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::well_formed::elements;
    use crate::bench::sample;

    const ATTACK: &str = "\"><script>alert('x')</script>&";

    #[test]
    fn the_page_is_well_formed() {
        let page = page(&sample::results());
        let names = elements(page.strip_prefix("<!DOCTYPE html>").unwrap());
        let count = |name: &str| names.iter().filter(|it| *it == name).count();
        assert_eq!((count("html"), count("main"), count("h1"), count("table")), (1, 1, 1, 2));
        assert_eq!(count("svg"), count("desc"));
        assert_eq!(count("svg"), 7);
        assert_eq!(page.matches(r#"role="img""#).count(), 7);
    }

    #[test]
    fn whatever_comes_from_data_is_escaped() {
        let mut results = sample::results();
        for text in [
            &mut results.version,
            &mut results.command,
            &mut results.machine.processor,
            &mut results.machine.system,
            &mut results.machine.redis,
            &mut results.machine.postgres,
            &mut results.machine.storage,
        ] {
            ATTACK.clone_into(text);
        }
        for row in &mut results.rows {
            ATTACK.clone_into(&mut row.name);
            row.note = Some(ATTACK.to_owned());
        }
        for figure in &mut results.figures {
            ATTACK.clone_into(&mut figure.name);
            ATTACK.clone_into(&mut figure.unit);
        }
        let page = page(&results);
        assert!(!page.contains("<script"), "{page}");
        assert!(!elements(&page).iter().any(|name| name == "script"));
        // As often as the data says it, at least: nothing was dropped instead.
        let texts = 9 + results.rows.len() * 2 + results.figures.len() * 4;
        let escaped = "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;";
        assert!(page.matches(escaped).count() >= texts, "{}", page.matches(escaped).count());
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let page = page(&sample::results());
        for way in ["src=", "href", "url(", "@import", "http:", "https:", "<link", "<script"] {
            assert!(!page.contains(way), "{way}");
        }
    }

    #[test]
    fn a_section_is_there_only_if_it_has_something_to_show() {
        let headings = |results: &Results| -> Vec<String> {
            let page = page(results);
            page.split("<h2>").skip(1).map(|rest| rest[..rest.find('<').unwrap()].to_owned()).collect()
        };
        let mut results = sample::results();
        assert_eq!(headings(&results), ["Figures to reach", "Charts", "The end of a sale", "All rows"]);
        results.rows.retain(|row| row.group == Group::ManyProducts);
        assert_eq!(headings(&results), ["Figures to reach", "All rows"]);
        results.rows.clear();
        results.figures.clear();
        assert!(headings(&results).is_empty());
        elements(&page(&results));
    }

    #[test]
    fn the_head_of_the_page_says_what_ran_where() {
        let mut results = sample::results();
        let page_of_all = page(&results);
        for said in ["segstock 0.1.0: benchmark", "12 min 5 s", "AMD EPYC 7B13, 8 cores", "fsync on", &results.command]
        {
            assert!(page_of_all.contains(said), "{said}");
        }
        assert!(!page_of_all.contains(r#"class="rough""#));
        results.quick = true;
        assert!(page(&results).contains(r#"class="rough""#));
    }
}
