//! A chart with a lane for each row: its name, its numbers, and its marks along a common axis.

use super::drawing::{Key, LINE, Shape, WIDTH, below, fitted, hint, image, key, label, mark, stroke, text_width};
use super::markup::Element;
use super::scale::Scale;
use crate::bench::numbers::chosen;

const TRACK: f64 = 18.0;
/// From a name to what is below it.
const GAP: f64 = 3.0;
const LANE: f64 = LINE + GAP + TRACK + 10.0;
const INSET: f64 = 8.0;

/// One row of the chart.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) name: String,
    /// Written at the end of the line.
    pub(super) numbers: String,
    pub(super) marks: Vec<Mark>,
}

/// Something along the axis.
#[derive(Debug)]
pub(super) enum Mark {
    /// From here to there, with its number inside where there is room.
    Block { from: f64, to: f64, class: &'static str, number: String, hint: String },
    /// A thin line from here to there.
    Reach { from: f64, to: f64 },
    /// A point.
    Point { at: f64, shape: Shape, class: &'static str, hint: String },
}

/// A chart of lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Unique in the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// What the axis measures, with the unit.
    pub(super) axis: &'static str,
    pub(super) scale: Scale,
    pub(super) keys: Vec<Key>,
    pub(super) lanes: Vec<Lane>,
}

impl Lanes {
    /// The chart as an image.
    pub(super) fn draw(&self) -> Element {
        let (key, key_height) = key(&self.keys, 0.0);
        let top = key_height + 8.0;
        let tops = std::iter::successors(Some(top), |top| Some(top + LANE));
        let bottom = tops.clone().nth(self.lanes.len()).unwrap_or(top) - 4.0;
        image(self.id, bottom + LINE * 2.0 + 8.0, self.title, &self.in_words())
            .with(key)
            .with_all(self.scale.ticks().iter().flat_map(|tick| {
                let (x, text) = (self.x(*tick), chosen(*tick));
                let class = if *tick == 0.0 { "base" } else { "grid" };
                [stroke(class, (x, top), (x, bottom)), below(x, bottom + LINE - 2.0, &text)]
            }))
            .with(label(WIDTH, bottom + LINE * 2.0 + 2.0, "end", self.axis).class("axis"))
            .with_all(self.lanes.iter().zip(tops).map(|(lane, top)| self.lane(lane, top)))
    }

    fn in_words(&self) -> String {
        let hint = |mark: &Mark| match mark {
            Mark::Block { hint, .. } | Mark::Point { hint, .. } => Some(hint.clone()),
            Mark::Reach { .. } => None,
        };
        let of = |lane: &Lane| {
            let marks: Vec<String> = lane.marks.iter().filter_map(hint).collect();
            format!("{}: {}", lane.name, marks.join(", "))
        };
        let lanes: Vec<String> = self.lanes.iter().map(of).collect();
        format!("{}. {}.", self.axis, lanes.join(". "))
    }

    fn x(&self, number: f64) -> f64 {
        INSET + self.scale.place(number) * (WIDTH - INSET * 2.0)
    }

    fn lane(&self, lane: &Lane, top: f64) -> Element {
        let room = WIDTH - text_width(&lane.numbers) - 14.0;
        let name = label(0.0, top + 13.0, "start", &fitted(&lane.name, room)).class("name");
        let numbers = label(WIDTH, top + 13.0, "end", &lane.numbers).class("number");
        let track = top + LINE + GAP + TRACK / 2.0;
        Element::new("g")
            // The names stand over the lines of the ticks.
            .with(Element::new("rect").class("ground").at("x", 0.0).at("y", top).at("width", WIDTH).at("height", LINE))
            .with(name)
            .with(numbers)
            .with_all(lane.marks.iter().map(|mark| self.mark(mark, track)))
    }

    fn mark(&self, marked: &Mark, y: f64) -> Element {
        match marked {
            Mark::Reach { from, to } => stroke("reach", (self.x(*from), y), (self.x(*to), y)),
            Mark::Point { at, shape, class, hint: text } => mark(*shape, class, self.x(*at), y).with(hint(text)),
            Mark::Block { from, to, class, number, hint: text } => {
                let (from, to) = (self.x(*from), self.x(*to));
                let rectangle = Element::new("rect")
                    .class(&format!("{class} block"))
                    .at("x", from)
                    .at("y", y - TRACK / 2.0)
                    .at("width", to - from)
                    .at("height", TRACK)
                    .with(hint(text));
                let fits = text_width(number) + 4.0 <= to - from;
                let inside = fits.then(|| label(f64::midpoint(from, to), y + 4.0, "middle", number));
                Element::new("g").with(rectangle).with_all(inside.map(|it| it.class(&format!("{class} inside"))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(to: f64) -> Lanes {
        let block =
            Mark::Block { from: 0.0, to, class: "service", number: "12.5".to_owned(), hint: "service 12.5".to_owned() };
        Lanes {
            id: "lanes",
            title: "Lanes",
            axis: "µs an order",
            scale: Scale::linear([100.0]),
            keys: Vec::new(),
            lanes: vec![Lane { name: "durable orders".to_owned(), numbers: "12.5 µs".to_owned(), marks: vec![block] }],
        }
    }

    #[test]
    fn a_block_is_as_long_as_its_number() {
        let drawn = chart(50.0).draw().to_string();
        assert!(drawn.contains(r#"<rect class="service block" x="8" y="28" width="192""#), "{drawn}");
    }

    #[test]
    fn a_number_stands_in_a_block_that_has_room() {
        let inside = r#"class="service inside">12.5</text>"#;
        assert!(chart(50.0).draw().to_string().contains(inside));
        assert!(!chart(5.0).draw().to_string().contains(inside));
    }

    #[test]
    fn the_description_has_every_number() {
        assert!(chart(50.0).draw().to_string().contains("µs an order. durable orders: service 12.5.</desc>"));
    }
}
