//! Checks the text of a page: every element is closed in turn, and nothing else looks like one.

/// The names of all elements, in the order in which they begin; panics where the text is not well-formed.
pub(super) fn elements(text: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find('<') {
        if open.last() != Some(&"style") {
            check_text(&rest[..begin]);
        }
        let end = begin + rest[begin..].find('>').unwrap_or_else(|| panic!("no end: {}", excerpt(&rest[begin..])));
        let tag = &rest[begin + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in the wrong place: {}", excerpt(&rest[begin..]));
        } else if !tag.starts_with('!') {
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            assert!(name.chars().all(|it| it.is_ascii_alphanumeric()), "no name: {tag}");
            check_attributes(attributes);
            names.push(name.to_owned());
            if !["meta", "br"].contains(&name) {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
    names
}

fn check_attributes(attributes: &str) {
    let mut rest = attributes;
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("no value: {rest}"));
        assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-'), "no attribute: {name}");
        let (value, after) = value.split_once('"').unwrap_or_else(|| panic!("no end: {rest}"));
        check_text(value);
        assert!(!value.contains("NaN") && !value.contains("inf"), "no number: {name}={value}");
        assert!(after.is_empty() || after.starts_with(' '), "no space: {rest}");
        rest = after.trim_start();
    }
}

fn check_text(text: &str) {
    assert!(!text.contains(['>', '"', '\'']), "not escaped: {}", excerpt(text));
    for after in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| after.starts_with(entity));
        assert!(known, "not escaped: &{}", excerpt(after));
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

#[test]
fn what_is_not_well_formed_is_found() {
    assert_eq!(elements("<p class=\"a b\">x &amp; y<br></p>"), ["p", "br"]);
    for broken in
        ["<p>", "<p></b>", "<p><b></p></b>", "<p a=1></p>", "<p>a & b</p>", "<p>\"</p>", "<p", "<p a=\"1\"b></p>"]
    {
        assert!(std::panic::catch_unwind(|| elements(broken)).is_err(), "{broken}");
    }
}
