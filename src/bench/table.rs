//! What the terminal shows: aligned tables that are Markdown as well, so that they can be pasted into a document.

use super::numbers::{NONE, duration, limit, measured, percent, range, with_unit};
use super::results::{Cpu, Group, Results, Row};

/// The results as text: where they come from, the figures, and the rows by group.
pub fn table(results: &Results) -> String {
    let mut parts = vec![origin(results)];
    if !results.figures.is_empty() {
        parts.push(figures(results));
    }
    if !results.rows.is_empty() {
        parts.push(rows(results));
    }
    let notes = notes(results);
    if !notes.is_empty() {
        parts.push(notes);
    }
    parts.join("\n")
}

fn origin(results: &Results) -> String {
    let Results { version, machine, command, .. } = results;
    let pace = if results.quick { "quick run" } else { "run" };
    let began = results.started_at.format("%Y-%m-%d %H:%M UTC");
    let took = duration(results.took_seconds);
    let line = format!(
        "segstock {version} on {}, {} cores, {} GiB, {}, {}, {}, {}; {pace} of {took}, {began}: `{command}`",
        machine.processor,
        machine.cores,
        measured(machine.memory_gib),
        machine.system,
        machine.redis,
        machine.postgres,
        machine.storage,
    );
    on_one_line(&line) + "\n"
}

fn figures(results: &Results) -> String {
    let mut grid = Grid::new(&[
        ("figure", Align::Left),
        ("median", Align::Right),
        ("low–high", Align::Right),
        ("at least", Align::Right),
        ("then", Align::Right),
        ("verdict", Align::Left),
    ]);
    for figure in &results.figures {
        grid.row(vec![
            figure.name.clone(),
            with_unit(&measured(figure.value.median), &figure.unit),
            range(&figure.value),
            limit(figure, figure.at_least),
            limit(figure, figure.then),
            figure.verdict().to_string(),
        ]);
    }
    grid.to_string()
}

fn rows(results: &Results) -> String {
    let mut grid = Grid::new(&[
        ("group", Align::Left),
        ("row", Align::Left),
        ("answers/s", Align::Right),
        ("low–high", Align::Right),
        ("p50 ms", Align::Right),
        ("p99 ms", Align::Right),
        ("CPU µs/order: service + redis + postgres", Align::Right),
        ("generator", Align::Right),
    ]);
    for row in Group::ALL.into_iter().flat_map(|group| results.rows_of(group)) {
        let latency = |pick: fn(&super::results::Percentiles) -> f64| {
            row.latency_ms.as_ref().map_or_else(|| NONE.to_owned(), |latency| measured(pick(latency)))
        };
        grid.row(vec![
            row.group.to_string(),
            row.name.clone(),
            measured(row.orders_per_second.median),
            range(&row.orders_per_second),
            latency(|latency| latency.p50),
            latency(|latency| latency.p99),
            row.cpu_us_per_order.as_ref().map_or_else(|| NONE.to_owned(), cpu),
            percent(row.generator_share),
        ]);
    }
    grid.to_string()
}

fn cpu(cpu: &Cpu) -> String {
    format!("{} + {} + {}", measured(cpu.service), measured(cpu.redis), measured(cpu.postgres))
}

fn notes(results: &Results) -> String {
    let noted = |row: &Row| row.note.as_ref().map(|note| format!("- {}, {}: {note}", row.group, row.name));
    let rows = Group::ALL.into_iter().flat_map(|group| results.rows_of(group));
    rows.filter_map(noted).map(|note| on_one_line(&note) + "\n").collect()
}

/// A line break in a name would tear a table apart, and other control characters are commands to a terminal.
fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[derive(Debug, Clone, Copy)]
enum Align {
    Left,
    Right,
}

/// Cells that are padded to the widest of their column once all are there.
struct Grid {
    aligned: Vec<Align>,
    lines: Vec<Vec<String>>,
}

impl Grid {
    fn new(headings: &[(&str, Align)]) -> Self {
        let (names, aligned) = headings.iter().map(|(name, align)| ((*name).to_owned(), *align)).unzip();
        Self { aligned, lines: vec![names] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.lines.push(cells.iter().map(|cell| on_one_line(cell).replace('|', "\\|")).collect());
    }

    fn width(&self, column: usize) -> usize {
        // Markdown asks for three dashes at least.
        self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default().max(3)
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns: Vec<(Align, usize)> =
            self.aligned.iter().enumerate().map(|(column, align)| (*align, self.width(column))).collect();
        for (number, line) in self.lines.iter().enumerate() {
            for (cell, &(align, width)) in line.iter().zip(&columns) {
                match align {
                    Align::Left => write!(formatter, "| {cell:<width$} ")?,
                    Align::Right => write!(formatter, "| {cell:>width$} ")?,
                }
            }
            formatter.write_str("|\n")?;
            if number == 0 {
                for &(align, width) in &columns {
                    match align {
                        Align::Left => write!(formatter, "|:{:-<width$}-", "")?,
                        Align::Right => write!(formatter, "|-{:-<width$}:", "")?,
                    }
                }
                formatter.write_str("|\n")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    /// The lines of each table in the text.
    fn tables(text: &str) -> Vec<Vec<&str>> {
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.split(|line| !line.starts_with('|'));
        tables.filter(|lines| !lines.is_empty()).map(<[&str]>::to_vec).collect()
    }

    /// Where the columns of a line begin, in characters; an escaped bar is part of a cell.
    fn bars(line: &str) -> Vec<usize> {
        let characters: Vec<char> = line.chars().collect();
        let is_bar = |at: &usize| characters[*at] == '|' && (*at == 0 || characters[*at - 1] != '\\');
        (0..characters.len()).filter(is_bar).collect()
    }

    #[test]
    fn every_figure_and_every_row_has_its_line() {
        let results = sample::results();
        let text = table(&results);
        let tables = tables(&text);
        assert_eq!(tables.len(), 2, "{text}");
        assert_eq!(tables[0].len(), 2 + results.figures.len());
        assert_eq!(tables[1].len(), 2 + results.rows.len());
        for row in &results.rows {
            let begins = |line: &&&str| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                cells[1] == row.group.to_string() && cells[2] == row.name
            };
            assert_eq!(tables[1].iter().filter(begins).count(), 1, "{}", row.name);
        }
        assert!(text.starts_with("segstock 0.1.0 on AMD EPYC 7B13, 8 cores, 31.3 GiB, Debian 12"), "{text}");
    }

    #[test]
    fn rows_stand_by_group() {
        let mut results = sample::results();
        results.rows.reverse();
        let text = table(&results);
        let groups: Vec<Group> = tables(&text)[1][2..]
            .iter()
            .map(|line| {
                let name = line.split('|').nth(1).unwrap().trim();
                Group::ALL.into_iter().find(|group| group.to_string() == name).unwrap()
            })
            .collect();
        assert!(groups.is_sorted(), "{text}");
    }

    #[test]
    fn columns_are_aligned_whatever_stands_in_them() {
        let mut results = sample::results();
        results.rows[0].name = "größer\n| als".to_owned();
        results.figures[0].unit = "µs".to_owned();
        let text = table(&results);
        for lines in tables(&text) {
            for line in &lines {
                assert_eq!(bars(line), bars(lines[0]), "{text}");
            }
        }
        assert!(text.contains("| größer \\| als"), "{text}");
    }

    #[test]
    fn a_line_holds_what_was_measured() {
        let text = table(&sample::results());
        let cells = |name: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(
            cells("÷ ceiling"),
            ["durable orders ÷ ceiling", "0.798×", "0.742–0.830", "≥ 0.6×", "≥ 0.75×", "reached"]
        );
        assert_eq!(cells("p99 at half")[1..], ["26.4 ms", "24.6–27.5", "≤ 20 ms", "≤ 10 ms", "missed"]);
        let durable = ["21,480", "19,976–22,339", "5.59", "19.0", "31.2 + 2.81 + 25.0", "42 %"];
        assert_eq!(cells("core  ")[2..], durable);
        assert_eq!(cells("twice the rate")[4..], ["–", "–", "–", "42 %"]);
        assert!(text.ends_with("- tail, last units: the last 1,000 units took 0.41 s\n"), "{text}");
    }

    #[test]
    fn nothing_measured_leaves_the_line_above() {
        let mut results = sample::results();
        results.rows.clear();
        results.figures.clear();
        assert_eq!(table(&results).lines().count(), 1);
    }
}
