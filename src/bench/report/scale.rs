//! Where a number stands along an axis, and which numbers are written beside it.

/// A range of numbers that is laid out from 0.0 to 1.0.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    /// From zero to a round number that is not below any of these: no difference looks larger than it is.
    pub(super) fn linear(numbers: impl IntoIterator<Item = f64>) -> Self {
        let highest = numbers.into_iter().filter(|number| number.is_finite()).fold(0.0, f64::max);
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let magnitude = 10_f64.powf((highest / 5.0).log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * magnitude);
        // A hair more than five, so that rounding does not skip a step that fits exactly.
        let step = steps.into_iter().find(|step| highest / step <= 5.0 + 1e-9).unwrap_or(magnitude * 10.0);
        let count = (highest / step - 1e-9).ceil().max(1.0);
        let ticks = std::iter::successors(Some(0.0), |tick| (*tick < count).then_some(tick + 1.0));
        Self { low: 0.0, high: count * step, logarithmic: false, ticks: ticks.map(|tick| tick * step).collect() }
    }

    /// From the lowest to the highest of these positions, each a tick; equal factors are equally far apart.
    pub(super) fn logarithmic_at(positions: impl IntoIterator<Item = f64>) -> Self {
        let mut ticks: Vec<f64> = positions.into_iter().filter(|position| has_logarithm(*position)).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let low = ticks.first().copied().unwrap_or(1.0);
        Self { low, high: ticks.last().copied().unwrap_or(low), logarithmic: true, ticks }
    }

    /// From a round number to a round number around these, with ticks at round numbers.
    pub(super) fn logarithmic(numbers: impl IntoIterator<Item = f64>) -> Self {
        let numbers = Self::logarithmic_at(numbers);
        let begin = 10_f64.powf(numbers.low.log10().floor());
        let decades = (numbers.high / begin).log10().ceil().max(1.0);
        let factors: &[f64] = if decades <= 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let starts = std::iter::successors(Some(begin), |start| (*start < numbers.high).then_some(start * 10.0));
        let mut ticks: Vec<f64> = starts.flat_map(|start| factors.iter().map(move |factor| factor * start)).collect();
        let below = |tick: &f64| *tick <= numbers.low * (1.0 + 1e-9);
        let first = ticks.iter().rposition(below).unwrap_or(0);
        let above = |tick: &f64| *tick >= numbers.high * (1.0 - 1e-9);
        let last = ticks.iter().position(above).unwrap_or(ticks.len() - 1).max(first + 1).min(ticks.len() - 1);
        ticks.truncate(last + 1);
        ticks.drain(..first);
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        Self { low, high, logarithmic: true, ticks }
    }

    /// The numbers to write beside the axis, from the lowest to the highest.
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Where the number stands; what is outside stands at the nearer end.
    pub(super) fn place(&self, number: f64) -> f64 {
        let place = if self.high <= self.low {
            0.5
        } else if self.logarithmic {
            (number / self.low).ln() / (self.high / self.low).ln()
        } else {
            (number - self.low) / (self.high - self.low)
        };
        // A number that is none, or has no logarithm, stands at the beginning.
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }
}

fn has_logarithm(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_places(scale: &Scale, places: &[(f64, f64)]) {
        for &(number, place) in places {
            assert!((scale.place(number) - place).abs() < 1e-9, "{number} at {}", scale.place(number));
        }
    }

    #[test]
    fn a_linear_scale_begins_at_zero_and_ends_round() {
        let scale = Scale::linear([120.0, 21_500.0, f64::NAN]);
        assert_eq!(scale.ticks(), [0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0, 25_000.0]);
        assert_places(&scale, &[(0.0, 0.0), (12_500.0, 0.5), (25_000.0, 1.0), (30_000.0, 1.0), (-1.0, 0.0)]);
        assert_eq!(Scale::linear([50.0]).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    }

    #[test]
    fn a_linear_scale_holds_whatever_is_measured() {
        for number in [0.0003, 0.7, 1.0, 2.5, 3.0, 7.0, 99.0, 100.0, 1e9] {
            let scale = Scale::linear([number]);
            let highest = scale.ticks()[scale.ticks().len() - 1];
            assert!(highest >= number * 0.999_999 && highest <= number * 2.0, "{number}: {:?}", scale.ticks());
            assert!((2..=6).contains(&scale.ticks().len()), "{number}: {:?}", scale.ticks());
        }
        assert_eq!(Scale::linear([]).ticks().len(), 6);
    }

    #[test]
    fn a_logarithmic_scale_gives_equal_factors_equal_room() {
        let scale = Scale::logarithmic_at([100.0, 1.0, 10.0, 10.0, 0.0]);
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0]);
        assert_places(&scale, &[(1.0, 0.0), (10.0, 0.5), (100.0, 1.0), (0.0, 0.0), (f64::NAN, 0.0)]);
        assert_places(&Scale::logarithmic_at([64.0]), &[(64.0, 0.5)]);
        assert_places(&Scale::logarithmic_at([]), &[(64.0, 0.5)]);
    }

    #[test]
    fn round_numbers_stand_around_what_was_measured() {
        assert_eq!(Scale::logarithmic([0.4, 300.0]).ticks(), [0.1, 1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(Scale::logarithmic([3.0, 45.0]).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(Scale::logarithmic([1.0, 10.0]).ticks(), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(Scale::logarithmic([7.0]).ticks(), [5.0, 10.0]);
        assert_eq!(Scale::logarithmic([5.0]).ticks(), [5.0, 10.0]);
    }
}
