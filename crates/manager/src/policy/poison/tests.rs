use super::*;

/// Feeds periods of 2 s with a hit ratio each; returns the period (from 1) of the first alarm.
struct Run {
    guardian: Guardian,
    policy: PoisonPolicy,
    input: PoisonInput,
}

impl Run {
    fn new(policy: PoisonPolicy) -> Self {
        Self { guardian: Guardian::default(), policy, input: PoisonInput::default() }
    }

    fn period(&mut self, lookups: u64, ratio: f64) -> Option<PoisonAction> {
        let hits = (lookups as f64 * ratio).round() as u64;
        self.input.now_ms += 2000;
        self.input.cache.hits += hits;
        self.input.cache.misses += lookups - hits;
        self.guardian.period(&self.policy, &self.input)
    }
}

fn paper() -> PoisonPolicy {
    PoisonPolicy { samples: 1, ..PoisonPolicy::default() }
}

#[test]
fn the_papers_run_raises_the_alarm_at_the_fourth_report_and_not_at_the_third() {
    let mut run = Run::new(paper());
    assert_eq!(run.period(1000, 1.0), None, "the first sample has nothing before it");
    assert_eq!(run.period(1000, 1.0), None);
    assert_eq!(run.period(1000, 0.94), None, "from 100 to 94% is not suspicious");
    assert!(matches!(run.period(1000, 0.30), Some(PoisonAction::Deploy(_))));
}

#[test]
fn a_pause_of_the_traffic_raises_no_alarm() {
    let mut run = Run::new(paper());
    for _ in 0..5 {
        run.period(1000, 1.0);
    }
    for _ in 0..20 {
        assert_eq!(run.period(0, 0.0), None, "a period without lookups has no ratio");
    }
    assert_eq!(run.period(10, 0.0), None, "ten lookups say nothing");
    assert_eq!(run.period(1000, 1.0), None);
}

#[test]
fn a_change_of_contents_raises_no_alarm_by_default() {
    let mut run = Run::new(PoisonPolicy::default());
    for _ in 0..5 {
        run.period(1000, 1.0);
    }
    assert_eq!(run.period(1000, 0.2), None, "the cache fills with the new contents");
    assert_eq!(run.period(1000, 1.0), None);
    assert_eq!(run.guardian.phase(), Phase::Idle);
}

#[test]
fn a_cache_that_was_started_again_raises_no_alarm() {
    let mut run = Run::new(paper());
    for _ in 0..5 {
        run.period(1000, 1.0);
    }
    run.input.cache = CacheSample { boot: 1, hits: 0, misses: 0 };
    for _ in 0..3 {
        assert_eq!(run.period(1000, 0.0), None);
    }
}

fn standing() -> Run {
    let mut run = Run::new(paper());
    for ratio in [1.0, 1.0, 0.3] {
        run.period(1000, ratio);
    }
    assert_eq!(run.guardian.phase(), Phase::Deploying);
    run.input.standing = true;
    run.input.fakes = 5;
    assert_eq!(run.period(1000, 0.5), None);
    assert_eq!(run.guardian.phase(), Phase::Active(0));
    run
}

#[test]
fn a_verifier_goes_after_exactly_ten_clean_periods_and_a_late_fake_begins_them_again() {
    let mut run = standing();
    run.input.fakes = 0;
    for period in 1..=9 {
        assert_eq!(run.period(1000, 1.0), None, "clean period {period}");
    }
    run.input.fakes = 1;
    assert_eq!(run.period(1000, 1.0), None, "the tenth has a fake");
    run.input.fakes = 0;
    for period in 1..=9 {
        assert_eq!(run.period(1000, 1.0), None, "clean period {period} again");
    }
    assert_eq!(run.period(1000, 1.0), Some(PoisonAction::Remove));
    assert_eq!(run.guardian.phase(), Phase::Draining);
    run.input.standing = false;
    run.period(1000, 1.0);
    assert_eq!(run.guardian.phase(), Phase::Idle);
}

/// Fakes end, the clean periods pass, and the verifier goes; how many periods that took.
fn ends(run: &mut Run) -> u32 {
    run.input.fakes = 0;
    let mut periods = 1;
    while run.period(1000, 1.0) != Some(PoisonAction::Remove) {
        periods += 1;
        assert!(periods < 1000, "it is never removed");
    }
    run.input.standing = false;
    run.period(1000, 1.0);
    periods
}

#[test]
fn an_attacker_who_pauses_is_met_after_one_period_where_it_was_and_for_ever_longer() {
    let mut run = standing();
    run.policy.samples = 2;
    assert_eq!(ends(&mut run), 10);
    for times in [2, 4, 8, 16, 16] {
        run.period(1000, 1.0);
        let alarm = run.period(1000, 0.3);
        assert!(matches!(alarm, Some(PoisonAction::Again(_))), "{times}: {alarm:?}");
        run.input.standing = true;
        run.input.fakes = 5;
        run.period(1000, 0.9);
        assert_eq!(ends(&mut run), 10 * times, "it stays longer each time");
    }
    run.input.now_ms += run.policy.memory_ms;
    run.period(1000, 1.0);
    assert_eq!(run.period(1000, 0.3), None, "what is forgotten is as the first time");
    assert!(matches!(run.period(1000, 0.3), Some(PoisonAction::Deploy(_))));
}

#[test]
fn no_alarm_is_raised_by_the_removal_itself() {
    let mut run = standing();
    run.policy.cooldown_ms = 4000;
    ends(&mut run);
    assert_eq!(run.period(1000, 0.3), None, "within the time after a removal");
    assert!(run.period(1000, 0.3).is_some());
}

#[test]
fn a_verifier_that_moved_away_goes_back_when_fakes_come_by_another_way() {
    let mut run = standing();
    run.input.narrower = true;
    assert_eq!(run.period(1000, 1.0), None, "the first period with fakes");
    assert_eq!(run.period(1000, 1.0), Some(PoisonAction::Move));
    (run.input.narrower, run.input.away, run.input.fakes) = (false, true, 0);
    assert_eq!(run.period(1000, 0.3), None);
    assert_eq!(run.period(1000, 0.4), None, "it rises: the cache recovers");
    for _ in 1..STUCK_PERIODS {
        assert_eq!(run.period(1000, 0.4), None);
    }
    assert!(matches!(run.period(1000, 0.4), Some(PoisonAction::Back(_))));
    (run.input.narrower, run.input.away, run.input.fakes) = (true, false, 9);
    for _ in 0..10 {
        assert_eq!(run.period(1000, 0.4), None, "there it sees all, and stays");
    }
}

#[test]
fn a_verifier_that_is_being_replaced_has_no_clean_periods() {
    let mut run = standing();
    run.input.fakes = 0;
    run.input.standing = false;
    for _ in 0..20 {
        assert_eq!(run.period(1000, 1.0), None);
    }
    assert_eq!(run.guardian.phase(), Phase::Active(0));
}

#[test]
fn a_verifier_moves_after_two_periods_with_fakes_when_that_narrows_its_work() {
    let mut run = standing();
    assert_eq!(run.period(1000, 1.0), None, "no narrower place");
    run.input.narrower = true;
    assert_eq!(run.period(1000, 1.0), Some(PoisonAction::Move));
}
