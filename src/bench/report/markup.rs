//! Elements of HTML and SVG. Written out they are balanced, and whatever came from data is escaped.

use std::fmt;

/// Elements of HTML that have no end.
const VOID: &[&str] = &["br", "meta"];

/// An element with its attributes and what is inside.
#[derive(Debug, Clone)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    inside: Vec<Inside>,
}

#[derive(Debug, Clone)]
enum Inside {
    Element(Element),
    Text(String),
    /// Written as it is; only what was compiled in can be this.
    Style(&'static str),
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), inside: Vec::new() }
    }

    /// An element that holds a text.
    pub(super) fn with_text(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name).text(text)
    }

    pub(super) fn style(css: &'static str) -> Self {
        let inside = vec![Inside::Style(css)];
        Self { inside, ..Self::new("style") }
    }

    pub(super) fn set(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// Sets a coordinate or a length of a drawing, where a tenth of a unit is as fine as anybody sees.
    pub(super) fn at(self, name: &'static str, value: f64) -> Self {
        self.set(name, coordinate(value))
    }

    pub(super) fn class(self, names: &str) -> Self {
        self.set("class", names)
    }

    pub(super) fn text(mut self, text: impl fmt::Display) -> Self {
        self.inside.push(Inside::Text(text.to_string()));
        self
    }

    pub(super) fn with(mut self, element: Element) -> Self {
        self.inside.push(Inside::Element(element));
        self
    }

    pub(super) fn with_all(mut self, elements: impl IntoIterator<Item = Element>) -> Self {
        self.inside.extend(elements.into_iter().map(Inside::Element));
        self
    }
}

/// A coordinate as text.
pub(super) fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

impl fmt::Display for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(formatter, " {name}=\"{}\"", Escaped(value))?;
        }
        formatter.write_str(">")?;
        if VOID.contains(&self.name) {
            return Ok(());
        }
        for inside in &self.inside {
            match inside {
                Inside::Element(element) => element.fmt(formatter)?,
                Inside::Text(text) => Escaped(text).fmt(formatter)?,
                Inside::Style(css) => formatter.write_str(css)?,
            }
        }
        write!(formatter, "</{}>", self.name)
    }
}

/// Text in which nothing can begin or end an element or an attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in self.0.split_inclusive(['&', '<', '>', '"', '\'']) {
            let mut plain = piece.chars();
            let escaped = match plain.next_back() {
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                Some('\'') => "&#39;",
                _ => {
                    formatter.write_str(piece)?;
                    continue;
                }
            };
            write!(formatter, "{}{escaped}", plain.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_nested_and_closed() {
        let list = Element::new("ul").class("key").with_all([1, 2].map(|number| Element::with_text("li", number)));
        let head = Element::new("head").with(Element::new("meta").set("charset", "utf-8")).with(list);
        assert_eq!(head.to_string(), r#"<head><meta charset="utf-8"><ul class="key"><li>1</li><li>2</li></ul></head>"#);
    }

    #[test]
    fn texts_and_attributes_are_escaped() {
        let element = Element::new("p").set("title", r#"a"b'c&d"#).text("<script>alert('x')</script> & so on");
        let text = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; so on";
        assert_eq!(element.to_string(), format!(r#"<p title="a&quot;b&#39;c&amp;d">{text}</p>"#));
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(Element::new("g").at("x", 1.0).at("y", 2.345).to_string(), r#"<g x="1" y="2.3"></g>"#);
    }
}
