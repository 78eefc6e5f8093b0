//! A chart of numbers over positions, joined by lines.

use super::drawing::{Key, LINE, Shape, WIDTH, below, hint, image, key, label, mark, stroke, text_width};
use super::markup::{Element, coordinate};
use super::scale::Scale;
use crate::bench::numbers::{chosen, measured};

const PLOT_HEIGHT: f64 = 190.0;
/// Points keep away from the sides, so that their marks and labels are whole.
const INSET: f64 = 18.0;

/// What is drawn along one direction.
#[derive(Debug)]
pub(super) struct Axis {
    /// With the unit.
    pub(super) title: &'static str,
    pub(super) scale: Scale,
}

/// Points that belong together, from left to right.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) key: Key,
    pub(super) points: Vec<Point>,
}

/// What was measured at one position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The lowest and the highest sample; nothing where there is but one.
    pub(super) spread: Option<(f64, f64)>,
}

impl Point {
    fn in_words(&self) -> String {
        let spread = self.spread.map(|(low, high)| format!(" ({}–{})", measured(low), measured(high)));
        format!("{}: {}{}", chosen(self.x), measured(self.y), spread.unwrap_or_default())
    }

    /// Everything that the vertical axis must hold.
    pub(super) fn heights(&self) -> impl Iterator<Item = f64> {
        let (low, high) = self.spread.unwrap_or((self.y, self.y));
        [self.y, low, high].into_iter()
    }
}

/// A chart of lines.
#[derive(Debug)]
pub(super) struct Lines {
    /// Unique in the page.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

impl Lines {
    /// The chart as an image.
    pub(super) fn draw(&self) -> Element {
        let keys: Vec<Key> = self.series.iter().map(|series| series.key).collect();
        // A single line is named by the axis.
        let (key, key_height) = if keys.len() > 1 { key(&keys, 0.0) } else { key(&[], 0.0) };
        let above = if key_height > 0.0 { key_height + 8.0 } else { 0.0 };
        let widest = self.y.scale.ticks().iter().map(|tick| text_width(&chosen(*tick))).fold(0.0, f64::max);
        let top = above + LINE + 12.0;
        let plot = Plot { chart: self, left: widest + 8.0, top };
        image(self.id, top + PLOT_HEIGHT + LINE * 2.0 + 8.0, self.title, &self.in_words())
            .with(key)
            .with(label(0.0, above + 12.0, "start", self.y.title).class("axis"))
            .with_all(plot.grid())
            .with_all(plot.positions())
            .with(label(WIDTH, top + PLOT_HEIGHT + LINE * 2.0 + 3.0, "end", self.x.title).class("axis"))
            .with_all(self.series.iter().map(|series| plot.series(series)))
    }

    fn in_words(&self) -> String {
        let of = |series: &Series| {
            let points: Vec<String> = series.points.iter().map(Point::in_words).collect();
            format!("{}, {}", series.key.text, points.join("; "))
        };
        let series: Vec<String> = self.series.iter().map(of).collect();
        format!("{} over {}. {}.", self.y.title, self.x.title, series.join(". "))
    }
}

/// The part of a chart in which the points are.
struct Plot<'a> {
    chart: &'a Lines,
    left: f64,
    top: f64,
}

impl Plot<'_> {
    fn x(&self, x: f64) -> f64 {
        self.left + INSET + self.chart.x.scale.place(x) * (WIDTH - self.left - INSET * 2.0)
    }

    fn y(&self, y: f64) -> f64 {
        self.top + (1.0 - self.chart.y.scale.place(y)) * PLOT_HEIGHT
    }

    /// A line across for each tick, with its number.
    fn grid(&self) -> impl Iterator<Item = Element> {
        self.chart.y.scale.ticks().iter().map(|tick| {
            let y = self.y(*tick);
            let class = if *tick == 0.0 { "base" } else { "grid" };
            Element::new("g").with(stroke(class, (self.left, y), (WIDTH, y))).with(label(
                self.left - 6.0,
                y + 4.0,
                "end",
                &chosen(*tick),
            ))
        })
    }

    /// The numbers below. One that would run into the number before it is left out.
    fn positions(&self) -> Vec<Element> {
        let mut taken = f64::NEG_INFINITY;
        let mut shown = Vec::new();
        for tick in self.chart.x.scale.ticks() {
            let (x, text) = (self.x(*tick), chosen(*tick));
            let half = text_width(&text) / 2.0;
            if x - half < taken {
                continue;
            }
            taken = x + half + 6.0;
            let bottom = self.top + PLOT_HEIGHT;
            shown.push(stroke("base", (x, bottom), (x, bottom + 4.0)));
            shown.push(below(x, bottom + LINE, &text));
        }
        shown
    }

    fn series(&self, series: &Series) -> Element {
        let Key { shape, class, text } = series.key;
        let group = Element::new("g");
        let places: Vec<String> = series
            .points
            .iter()
            .map(|point| format!("{},{}", coordinate(self.x(point.x)), coordinate(self.y(point.y))))
            .collect();
        let line = Element::new("polyline").set("points", places.join(" "));
        if shape == Shape::Dashes {
            return group.with(line.class(&format!("{class} line dashes")).with(hint(text)));
        }
        group.with(line.class(&format!("{class} line"))).with_all(series.points.iter().map(|point| {
            let (x, y) = (self.x(point.x), self.y(point.y));
            let mark = mark(shape, class, x, y).with(hint(&point.in_words()));
            Element::new("g").with_all(point.spread.into_iter().flat_map(|spread| self.whisker(x, spread))).with(mark)
        }))
    }

    fn whisker(&self, x: f64, (low, high): (f64, f64)) -> [Element; 3] {
        let (low, high) = (self.y(low), self.y(high));
        let across = |y| stroke("whisker", (x - 4.0, y), (x + 4.0, y));
        [stroke("whisker", (x, low), (x, high)), across(low), across(high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<Point>) -> Lines {
        let key = Key { shape: Shape::Circle, class: "service", text: "measured" };
        Lines {
            id: "chart",
            title: "A chart",
            x: Axis { title: "segments", scale: Scale::linear(points.iter().map(|point| point.x)) },
            y: Axis { title: "answers a second", scale: Scale::linear(points.iter().flat_map(Point::heights)) },
            series: vec![Series { key, points }],
        }
    }

    #[test]
    fn more_stands_higher_and_further_right() {
        let chart = chart(vec![
            Point { x: 0.0, y: 0.0, spread: None },
            Point { x: 10.0, y: 100.0, spread: Some((50.0, 100.0)) },
        ]);
        let plot = Plot { chart: &chart, left: 40.0, top: 20.0 };
        assert_eq!((plot.x(0.0), plot.y(0.0)), (58.0, 20.0 + PLOT_HEIGHT));
        assert_eq!((plot.x(10.0), plot.y(100.0)), (WIDTH - INSET, 20.0));
        let drawn = plot.series(&chart.series[0]).to_string();
        assert!(drawn.contains(r#"points="58,210 382,20""#), "{drawn}");
        assert!(drawn.contains(r#"<line class="whisker" x1="382" y1="115" x2="382" y2="20">"#), "{drawn}");
        assert_eq!(drawn.matches("whisker").count(), 3, "a single sample has none");
    }

    #[test]
    fn the_description_has_every_number() {
        let chart = chart(vec![Point { x: 20.0, y: 21_500.0, spread: Some((20_000.0, 22_300.0)) }]);
        let said = "answers a second over segments. measured, 20: 21,500 (20,000–22,300).";
        assert!(chart.draw().to_string().contains(said), "{}", chart.draw());
    }

    #[test]
    fn positions_do_not_run_into_each_other() {
        let mut chart = chart(vec![Point { x: 1.0, y: 1.0, spread: None }]);
        chart.x.scale = Scale::logarithmic_at((1000..1100).map(f64::from));
        let plot = Plot { chart: &chart, left: 40.0, top: 20.0 };
        let shown = plot.positions().len() / 2;
        assert!((5..=9).contains(&shown), "{shown}");
    }
}
