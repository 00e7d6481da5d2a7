use super::*;

/// The chain of the paper's Fig. 5 as numbers: content store, backward routers, name router.
/// The name router copies each Data to every backward router: `a + b n` (undn, Appendix B), and a
/// backward router pays for what it handles and for what it discards.
struct Chain {
    instances: u32,
    /// What the consumer would take, in Data a second.
    demand: f64,
}

const A: f64 = 21.0e-6;
const B: f64 = 22.8e-6;
const QUOTA: f64 = 0.67;
const HANDLE: f64 = QUOTA / 9_900.0;
const DISCARD: f64 = 9.0e-6;

impl Chain {
    fn rate(&self) -> f64 {
        let n = f64::from(self.instances);
        let router = 1.0 / (A + B * n);
        let clone = QUOTA / (HANDLE / n + DISCARD * (n - 1.0) / n);
        self.demand.min(router).min(clone)
    }

    fn sample(&self) -> Vec<Group> {
        let n = f64::from(self.instances);
        let rate = self.rate();
        let load = rate * (HANDLE / n + DISCARD * (n - 1.0) / n) / QUOTA;
        vec![Group {
            name: "br1".into(),
            instances: self.instances,
            instances_max: 4,
            loads: vec![load; self.instances as usize],
            refused: None,
            rate,
            neighbours: vec![Neighbour {
                name: "nr1".into(),
                load: rate * (A + B * n),
                copies: true,
                scalable: None,
            }],
        }]
    }

    /// One period; true when something changed.
    fn step(&mut self, scaler: &mut Scaler, policy: &ScalingPolicy) -> Vec<Decision> {
        let decisions = scaler.period(policy, &self.sample());
        for decision in &decisions {
            match decision {
                Decision::Up { to, .. } | Decision::Down { to, .. } => self.instances = *to,
                Decision::Blocked { .. } => {}
            }
        }
        decisions
    }
}

fn chain() -> Chain {
    Chain { instances: 1, demand: 1e9 }
}

#[test]
fn the_papers_rule_adds_the_third_backward_router_which_makes_it_slower() {
    let policy = ScalingPolicy { rule: Rule::Paper, instances_max: 3, ..ScalingPolicy::default() };
    let (mut chain, mut scaler) = (chain(), Scaler::default());
    let mut rates = vec![chain.rate()];
    while chain.instances < 3 {
        assert!(!chain.step(&mut scaler, &policy).is_empty(), "stuck at {}", chain.instances);
        rates.push(chain.rate());
    }
    assert!(rates[1] > 1.3 * rates[0], "the second helps: {rates:?}");
    assert!(rates[2] < 0.85 * rates[1], "the third hurts: {rates:?}");
    // The consumer slows down: clones go one by one, and the network is as it was.
    chain.demand = 500.0;
    for expected in [2, 1] {
        chain.step(&mut scaler, &policy);
        assert_eq!(chain.instances, expected);
    }
    assert_eq!(chain.step(&mut scaler, &policy), []);
}

#[test]
fn the_headroom_rule_stops_at_the_second_and_names_the_bottleneck() {
    let policy = ScalingPolicy::default();
    let (mut chain, mut scaler) = (chain(), Scaler::default());
    let mut log = Vec::new();
    for _ in 0..20 {
        log.extend(chain.step(&mut scaler, &policy));
    }
    assert_eq!(chain.instances, 2);
    assert!(
        matches!(&log[0], Decision::Up { name, to: 2, gain: Some(g), .. } if name == "br1" && *g >= 1.1)
    );
    assert!(
        log[1..].iter().all(|d| matches!(d, Decision::Blocked { bottleneck, gain, .. }
            if bottleneck == "nr1" && *gain < 1.1)),
        "{log:?}"
    );
    assert!(log.len() > 1, "the refusal is told");
    chain.demand = 500.0;
    for _ in 0..10 {
        chain.step(&mut scaler, &policy);
    }
    assert_eq!(chain.instances, 1);
}

#[test]
fn one_hot_period_is_not_enough_and_a_decision_is_followed_by_rest() {
    let policy = ScalingPolicy::default();
    let (mut chain, mut scaler) = (chain(), Scaler::default());
    assert_eq!(chain.step(&mut scaler, &policy), [], "one sample");
    chain.demand = 4000.0;
    assert_eq!(chain.step(&mut scaler, &policy), [], "between the thresholds");
    chain.demand = 1e9;
    assert_eq!(chain.step(&mut scaler, &policy), [], "the count begins again");
    assert_eq!(chain.step(&mut scaler, &policy).len(), 1);
    for _ in 0..policy.cooldown {
        assert_eq!(chain.step(&mut scaler, &policy), [], "rest");
    }
}

#[test]
fn a_load_that_swings_around_a_threshold_makes_no_flapping() {
    let policy = ScalingPolicy::default();
    let mut scaler = Scaler::default();
    let mut chain = Chain { instances: 2, demand: 0.0 };
    for period in 0..40 {
        chain.demand = if period % 2 == 0 { 14_000.0 } else { 1_000.0 };
        assert_eq!(chain.step(&mut scaler, &policy), []);
    }
}

#[test]
fn a_clone_stays_while_the_rest_could_not_carry_its_load() {
    let policy = ScalingPolicy { down: 0.5, ..ScalingPolicy::default() };
    let mut scaler = Scaler::default();
    let mut group = chain().sample().remove(0);
    group.instances = 2;
    group.loads = vec![0.4, 0.4];
    for _ in 0..5 {
        assert_eq!(scaler.period(&policy, &[group.clone()]), [], "0.8 would be left on one");
    }
    group.loads = vec![0.1, 0.1];
    assert!(!scaler.period(&policy, &[group.clone()]).is_empty());
}

#[test]
fn a_neighbour_that_blocks_and_can_be_scaled_is_scaled_instead() {
    let policy = ScalingPolicy { samples: 1, ..ScalingPolicy::default() };
    let mut group = chain().sample().remove(0);
    group.neighbours[0].load = 1.0;
    group.neighbours[0].scalable = Some((1, 3));
    let decisions = Scaler::default().period(&policy, &[group]);
    assert!(matches!(&decisions[..], [Decision::Up { name, to: 2, .. }] if name == "nr1"));
}

#[test]
fn what_stands_at_the_edge_or_is_at_its_most_is_never_cloned() {
    for rule in [Rule::Paper, Rule::Headroom] {
        let policy = ScalingPolicy { samples: 1, rule, ..ScalingPolicy::default() };
        let mut group = chain().sample().remove(0);
        group.refused = Some("it stands at the edge".into());
        assert_eq!(Scaler::default().period(&policy, &[group.clone()]), []);
        group.refused = None;
        group.instances_max = 1;
        assert_eq!(Scaler::default().period(&policy, &[group]), []);
    }
}
