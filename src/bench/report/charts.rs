//! Which rows are drawn, and how. What was not measured has no chart.

use super::drawing::{Key, Shape};
use super::lanes::{Lane, Lanes, Mark};
use super::lines::{Axis, Lines, Point, Series};
use super::markup::Element;
use super::scale::Scale;
use crate::bench::numbers::measured;
use crate::bench::results::{Cpu, Group, Percentiles, Results, Row};

/// One lock that is held for 20 ms an order lets so many through a second, and N locks N times as many.
const CLASSIC_ORDERS_PER_SEGMENT: f64 = 50.0;

const ANSWERS: &str = "answers a second";
const MEASURED: Key = Key { shape: Shape::Circle, class: "service", text: "measured" };
const IDEAL: Key = Key { shape: Shape::Dashes, class: "ideal", text: "ideal: 50 a second and segment" };

type PickLatency = fn(&Percentiles) -> f64;
const PERCENTILES: [(Key, PickLatency); 5] = [
    (Key { shape: Shape::Circle, class: "service", text: "p50" }, |latency| latency.p50),
    (Key { shape: Shape::Triangle, class: "service", text: "p90" }, |latency| latency.p90),
    (Key { shape: Shape::Square, class: "service", text: "p99" }, |latency| latency.p99),
    (Key { shape: Shape::Diamond, class: "service", text: "p99.9" }, |latency| latency.p999),
    (Key { shape: Shape::Bar, class: "service", text: "max" }, |latency| latency.max),
];

type PickCpu = fn(&Cpu) -> f64;
const PROCESSES: [(Key, PickCpu); 4] = [
    (Key { shape: Shape::Block, class: "service", text: "segstock" }, |cpu| cpu.service),
    (Key { shape: Shape::Block, class: "redis", text: "Redis" }, |cpu| cpu.redis),
    (Key { shape: Shape::Block, class: "postgres", text: "PostgreSQL" }, |cpu| cpu.postgres),
    (Key { shape: Shape::Block, class: "generator", text: "load generator" }, |cpu| cpu.generator),
];

/// Every chart that has something to show. Those in one item belong next to each other.
pub(super) fn charts(results: &Results) -> Vec<Vec<Element>> {
    let items = [
        vec![latency(results), cpu(results)],
        vec![connections(results), connections_p99(results)],
        vec![segments(results), classic(results)],
        vec![batches(results)],
    ];
    let drawn = items.into_iter().map(|charts| charts.into_iter().flatten().collect());
    drawn.filter(|charts: &Vec<Element>| !charts.is_empty()).collect()
}

/// A chart with its heading, and what to see in it.
fn framed(heading: &str, drawn: Element, caption: &str) -> Element {
    Element::new("figure")
        .with(Element::with_text("h3", heading))
        .with(drawn)
        .with(Element::with_text("figcaption", caption))
}

fn segments(results: &Results) -> Option<Element> {
    let (title, id) = ("Throughput over segments", "segments");
    let points = throughput(results, Group::Segments);
    let x = Axis { title: "segments", scale: Scale::linear(points.iter().map(|point| point.x)) };
    let drawn = lines(id, title, x, ANSWERS, vec![Series { key: MEASURED, points }])?;
    Some(framed(title, drawn, "One lease serves every order that waits, so a few segments are enough."))
}

fn classic(results: &Results) -> Option<Element> {
    let (title, id) = ("The classic algorithm over segments", "classic");
    let points = throughput(results, Group::ClassicTable);
    let furthest = points.last()?.x;
    let ideal = [0.0, furthest].map(|x| Point { x, y: x * CLASSIC_ORDERS_PER_SEGMENT, spread: None });
    let x = Axis { title: "segments", scale: Scale::linear([furthest]) };
    let series = vec![Series { key: MEASURED, points }, Series { key: IDEAL, points: ideal.to_vec() }];
    let drawn = lines(id, title, x, ANSWERS, series)?;
    Some(framed(title, drawn, "One order a lease: only more segments let more orders through."))
}

fn batches(results: &Results) -> Option<Element> {
    let (title, id) = ("Throughput over the largest batch", "batches");
    let points = throughput(results, Group::Batch);
    let x = Axis { title: "max_batch, logarithmic", scale: positions(&points) };
    let drawn = lines(id, title, x, ANSWERS, vec![Series { key: MEASURED, points }])?;
    Some(framed(title, drawn, "How much the orders that share a lease and a commit are worth."))
}

fn connections(results: &Results) -> Option<Element> {
    let (title, id) = ("Throughput over connections", "connections");
    let points = throughput(results, Group::Connections);
    let x = Axis { title: "connections, logarithmic", scale: positions(&points) };
    let drawn = lines(id, title, x, ANSWERS, vec![Series { key: MEASURED, points }])?;
    Some(framed(title, drawn, "It should rise to its limit, and stay there."))
}

fn connections_p99(results: &Results) -> Option<Element> {
    let (title, id) = ("99 of 100 answers over connections", "connections-p99");
    let points =
        points(results, Group::Connections, |row| Some((row.latency_ms?.p99, None)).filter(|(y, _)| y.is_finite()));
    let x = Axis { title: "connections, logarithmic", scale: positions(&points) };
    let drawn = lines(id, title, x, "p99 in ms", vec![Series { key: MEASURED, points }])?;
    Some(framed(title, drawn, "Past the limit every further connection only waits longer."))
}

fn lines(id: &'static str, title: &'static str, x: Axis, y: &'static str, series: Vec<Series>) -> Option<Element> {
    if series.iter().any(|series| series.points.is_empty()) {
        return None;
    }
    let heights = series.iter().flat_map(|series| &series.points).flat_map(Point::heights);
    let y = Axis { title: y, scale: Scale::linear(heights) };
    Some(Lines { id, title, x, y, series }.draw())
}

fn positions(points: &[Point]) -> Scale {
    Scale::logarithmic_at(points.iter().map(|point| point.x))
}

fn throughput(results: &Results, group: Group) -> Vec<Point> {
    points(results, group, |row| {
        let spread = row.orders_per_second;
        spread.median.is_finite().then_some((spread.median, (spread.samples > 1).then_some((spread.low, spread.high))))
    })
}

/// The rows of a group that have a position and a number, from left to right.
fn points(results: &Results, group: Group, height: impl Fn(&Row) -> Option<(f64, Option<(f64, f64)>)>) -> Vec<Point> {
    let point = |row: &Row| {
        let (y, spread) = height(row)?;
        Some(Point { x: row.position? as f64, y, spread })
    };
    let mut points: Vec<Point> = results.rows_of(group).filter_map(point).collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    points
}

/// The rows that show the service as it is meant to run.
fn main_rows(results: &Results) -> impl Iterator<Item = (&Row, String)> {
    results.rows_of(Group::Core).chain(results.rows_of(Group::OpenLoop)).map(|row| {
        // A name in this group says how high the rate is, and not that there is one.
        let name = if row.group == Group::OpenLoop { format!("{}: {}", row.group, row.name) } else { row.name.clone() };
        (row, name)
    })
}

fn latency(results: &Results) -> Option<Element> {
    let title = "How long an answer takes";
    let rows: Vec<(Percentiles, String)> =
        main_rows(results).filter_map(|(row, name)| Some((row.latency_ms?, name))).collect();
    if rows.is_empty() {
        return None;
    }
    let lane = |(latency, name): &(Percentiles, String)| {
        let reach = Mark::Reach { from: latency.p50, to: latency.max };
        let points = PERCENTILES.iter().map(|(key, pick)| Mark::Point {
            at: pick(latency),
            shape: key.shape,
            class: key.class,
            hint: format!("{} {} ms", key.text, measured(pick(latency))),
        });
        Lane {
            name: name.clone(),
            numbers: format!("p50 {} · p99 {} ms", measured(latency.p50), measured(latency.p99)),
            marks: std::iter::once(reach).chain(points).collect(),
        }
    };
    let numbers = rows.iter().flat_map(|(latency, _)| PERCENTILES.iter().map(|(_, pick)| pick(latency)));
    let drawn = Lanes {
        id: "latency",
        title,
        axis: "ms, logarithmic",
        scale: Scale::logarithmic(numbers),
        keys: PERCENTILES.iter().map(|(key, _)| *key).collect(),
        lanes: rows.iter().map(lane).collect(),
    };
    Some(framed(title, drawn.draw(), "p99: 99 of 100 answers came within this time. Further left is better."))
}

fn cpu(results: &Results) -> Option<Element> {
    let title = "What an order costs";
    let rows: Vec<(Cpu, String)> =
        main_rows(results).filter_map(|(row, name)| Some((row.cpu_us_per_order?, name))).collect();
    if rows.is_empty() {
        return None;
    }
    let total = |cpu: &Cpu| PROCESSES.iter().map(|(_, pick)| pick(cpu)).sum::<f64>();
    let lane = |(cpu, name): &(Cpu, String)| {
        let mut from = 0.0;
        let blocks = PROCESSES.iter().map(|(key, pick)| {
            let number = measured(pick(cpu));
            let hint = format!("{} {number} µs", key.text);
            let begin = from;
            from += pick(cpu);
            Mark::Block { from: begin, to: from, class: key.class, number, hint }
        });
        let marks = blocks.collect();
        Lane { name: name.clone(), numbers: format!("{} µs", measured(total(cpu))), marks }
    };
    let drawn = Lanes {
        id: "cpu",
        title,
        axis: "µs of processor time an order",
        scale: Scale::linear(rows.iter().map(|(cpu, _)| total(cpu))),
        keys: PROCESSES.iter().map(|(key, _)| *key).collect(),
        lanes: rows.iter().map(lane).collect(),
    };
    Some(framed(title, drawn.draw(), "Processor time by process. The load generator is no part of the service."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::sample;

    fn drawn(results: &Results) -> String {
        charts(results).into_iter().flatten().map(|chart| chart.to_string()).collect()
    }

    /// The ids of all charts, in the order of the page.
    fn ids(results: &Results) -> Vec<String> {
        let drawn = drawn(results);
        let labelled = drawn.split("aria-labelledby=\"").skip(1);
        labelled.map(|rest| rest[..rest.find("-title").unwrap()].to_owned()).collect()
    }

    const ALL: [&str; 7] = ["latency", "cpu", "connections", "connections-p99", "segments", "classic", "batches"];

    #[test]
    fn a_chart_is_there_only_if_something_was_measured_for_it() {
        assert_eq!(ids(&sample::results()), ALL);
        let gone: [(&[Group], &[&str]); 6] = [
            (&[Group::Core, Group::OpenLoop], &["latency", "cpu"]),
            (&[Group::Connections], &["connections", "connections-p99"]),
            (&[Group::Segments], &["segments"]),
            (&[Group::ClassicTable], &["classic"]),
            (&[Group::Batch], &["batches"]),
            (&[Group::Tail, Group::ManyProducts], &[]),
        ];
        for (groups, charts) in gone {
            let mut results = sample::results();
            results.rows.retain(|row| !groups.contains(&row.group));
            let rest: Vec<&str> = ALL.into_iter().filter(|id| !charts.contains(id)).collect();
            assert_eq!(ids(&results), rest, "without {groups:?}");
        }
    }

    #[test]
    fn rows_without_what_a_chart_shows_have_none() {
        let mut results = sample::results();
        for row in &mut results.rows {
            (row.latency_ms, row.cpu_us_per_order, row.position) = (None, None, None);
        }
        assert!(charts(&results).is_empty());
    }

    #[test]
    fn each_chart_shows_its_own_group() {
        let results = sample::results();
        for chart in charts(&results).into_iter().flatten() {
            let chart = chart.to_string();
            let description = &chart[chart.find("<desc").unwrap()..chart.find("</desc>").unwrap()];
            let expected = match chart.split("aria-labelledby=\"").nth(1).unwrap().split('"').next().unwrap() {
                "latency-title latency-desc" => "durable orders: p50 5.59 ms, p90 10.6 ms, p99 19.0 ms, p99.9 39.1 ms",
                "cpu-title cpu-desc" => "segstock 31.2 µs, Redis 2.81 µs, PostgreSQL 25.0 µs, load generator 14.0 µs",
                "connections-title connections-desc" => "16: 4,900 (4,557–5,096); 64: 13,000",
                "connections-p99-title connections-p99-desc" => "16: 83.3; 64: 31.4;",
                "segments-title segments-desc" => "1: 9,800 (9,114–10,192); 2: 15,900",
                "classic-title classic-desc" => {
                    "50: 2,375 (2,209–2,470). ideal: 50 a second and segment, 0: 0; 50: 2,500."
                }
                _ => "1: 980 (911–1,019); 10: 6,900",
            };
            assert!(description.contains(expected), "{description}");
        }
    }

    #[test]
    fn each_block_begins_where_the_one_before_it_ends() {
        let chart = cpu(&sample::results()).unwrap().to_string();
        let number = |rest: &str| rest.split('"').next().unwrap().parse::<f64>().unwrap();
        let blocks = chart.split(" block\" x=\"").skip(1);
        let blocks: Vec<(f64, f64)> =
            blocks.map(|rest| (number(rest), number(rest.split_once("width=\"").unwrap().1))).collect();
        for lane in blocks.chunks(PROCESSES.len()) {
            assert!(lane.iter().all(|(_, width)| *width > 1.0), "{lane:?}");
            assert!(lane.windows(2).all(|two| (two[0].0 + two[0].1 - two[1].0).abs() < 0.2), "{lane:?}");
        }
        assert_eq!(blocks.len(), PROCESSES.len() * 4);
    }

    #[test]
    fn points_go_from_left_to_right() {
        let mut results = sample::results();
        results.rows.reverse();
        assert!(throughput(&results, Group::Batch).is_sorted_by_key(|point| point.x));
    }

    #[test]
    fn no_number_is_no_point() {
        let mut results = sample::results();
        for row in &mut results.rows {
            row.orders_per_second.median = f64::NAN;
            row.latency_ms = None;
            row.cpu_us_per_order = None;
        }
        assert!(charts(&results).is_empty());
    }
}
