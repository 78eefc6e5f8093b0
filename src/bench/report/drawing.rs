//! What all charts share: the frame, the key, and the shapes that tell marks apart without colour.

use super::markup::{Element, coordinate};

/// The width of every chart in its own units. Charts are as wide as their column, so this sets how large text looks.
pub(super) const WIDTH: f64 = 400.0;
/// The height of a line of text.
pub(super) const LINE: f64 = 17.0;

/// What a mark looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Triangle,
    Square,
    Diamond,
    Bar,
    /// A filled block.
    Block,
    /// A line to compare with.
    Dashes,
}

/// An entry of a chart's key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) shape: Shape,
    /// The class that gives it its colour.
    pub(super) class: &'static str,
    pub(super) text: &'static str,
}

/// An image that says in words what it shows, for those who cannot see it.
pub(super) fn image(id: &str, height: f64, title: &str, description: &str) -> Element {
    let named = [("title", title), ("desc", description)];
    Element::new("svg")
        .set("viewBox", format_args!("0 0 {WIDTH} {}", coordinate(height)))
        .set("role", "img")
        .set("aria-labelledby", format_args!("{id}-title {id}-desc"))
        .with_all(named.map(|(name, text)| Element::with_text(name, text).set("id", format_args!("{id}-{name}"))))
}

/// A text whose anchor ("start", "middle" or "end") stands at this point.
pub(super) fn label(x: f64, y: f64, anchor: &str, text: &str) -> Element {
    Element::with_text("text", text).at("x", x).at("y", y).set("text-anchor", anchor)
}

/// The number of a tick, centred below it, but never beyond the sides.
pub(super) fn below(x: f64, y: f64, text: &str) -> Element {
    let half = text_width(text) / 2.0;
    label(x.min(WIDTH - half).max(half), y, "middle", text)
}

/// A straight line.
pub(super) fn stroke(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Element {
    Element::new("line").class(class).at("x1", x1).at("y1", y1).at("x2", x2).at("y2", y2)
}

/// A text shows when the mouse rests on the mark.
pub(super) fn hint(text: &str) -> Element {
    Element::with_text("title", text)
}

/// How much room a text takes, roughly: fonts differ, so charts leave some to spare.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(|character| if ",.:·–| ".contains(character) { 4.2 } else { 7.2 }).sum()
}

/// The text, cut to the room that there is.
pub(super) fn fitted(text: &str, room: f64) -> String {
    if text_width(text) <= room {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while !kept.is_empty() && text_width(&kept) + text_width("…") > room {
        kept.pop();
    }
    kept.trim_end().to_owned() + "…"
}

/// A mark around this point.
pub(super) fn mark(shape: Shape, class: &str, x: f64, y: f64) -> Element {
    let polygon = |points: &[(f64, f64)]| {
        let point = |(right, down): &(f64, f64)| format!("{},{}", coordinate(x + right), coordinate(y + down));
        let points: Vec<String> = points.iter().map(point).collect();
        Element::new("polygon").set("points", points.join(" "))
    };
    let around =
        |width: f64, height: f64| polygon(&[(-width, -height), (width, -height), (width, height), (-width, height)]);
    let element = match shape {
        Shape::Circle => Element::new("circle").at("cx", x).at("cy", y).at("r", 4.0),
        Shape::Triangle => polygon(&[(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)]),
        Shape::Square => around(3.7, 3.7),
        Shape::Diamond => polygon(&[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)]),
        Shape::Bar => around(1.8, 6.0),
        Shape::Block => around(5.0, 5.0),
        Shape::Dashes => return stroke(&format!("{class} dashes"), (x - 8.0, y), (x + 8.0, y)),
    };
    element.class(&format!("{class} mark"))
}

/// The key, from `top` down; as many entries in a line as fit. Returns it with the height it took.
pub(super) fn key(entries: &[Key], top: f64) -> (Element, f64) {
    let mut group = Element::new("g").class("key");
    let (mut x, mut y) = (0.0, top + LINE * 0.5);
    for entry in entries {
        let half = if entry.shape == Shape::Dashes { 8.0 } else { 5.0 };
        let needed = half * 2.0 + 5.0 + text_width(entry.text);
        if x > 0.0 && x + needed > WIDTH {
            (x, y) = (0.0, y + LINE);
        }
        group = group.with(mark(entry.shape, entry.class, x + half, y));
        group = group.with(label(x + half * 2.0 + 5.0, y + 4.0, "start", entry.text));
        x += needed + 12.0;
    }
    (group, if entries.is_empty() { 0.0 } else { y + LINE * 0.5 - top })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_their_room() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted(&"long ".repeat(30), 100.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 100.0, "{cut}");
    }

    #[test]
    fn the_number_of_a_tick_stays_inside() {
        let place = |x| below(x, 0.0, "1,000").to_string();
        assert!(place(200.0).starts_with(r#"<text x="200""#), "{}", place(200.0));
        assert!(place(0.0).starts_with(r#"<text x="16.5""#), "{}", place(0.0));
        assert!(place(WIDTH).starts_with(r#"<text x="383.5""#), "{}", place(WIDTH));
    }

    #[test]
    fn a_key_goes_on_in_the_next_line() {
        let entry = Key { shape: Shape::Circle, class: "service", text: "twenty characters, ok" };
        let (_, one) = key(&[entry; 2], 0.0);
        let (_, two) = key(&[entry; 3], 0.0);
        assert_eq!((one, two), (LINE, LINE * 2.0));
        assert_eq!(key(&[], 0.0).1, 0.0);
    }
}
