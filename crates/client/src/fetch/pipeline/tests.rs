use super::*;
use crate::window::{AimdOptions, WindowLaw, WindowOptions};

fn ms(ms: u64) -> Tick {
    Tick::from_ms(ms)
}

fn pipeline(initial: f64, threshold: f64) -> Pipeline<u64> {
    let window = WindowOptions { initial, threshold, ..WindowOptions::default() };
    let law = WindowLaw::Aimd(AimdOptions { window, ..AimdOptions::default() });
    Pipeline::new(PipelineOptions { law, delay_aware: false, ..PipelineOptions::default() }, 0)
}

fn send_all(p: &mut Pipeline<u64>, now: Tick) -> Vec<u64> {
    std::iter::from_fn(|| p.next_send(now)).collect()
}

fn drain(p: &mut Pipeline<u64>) -> Vec<u64> {
    std::iter::from_fn(|| p.pop_ready()).collect()
}

#[test]
fn segments_come_out_in_order_whatever_the_order_of_arrival() {
    let mut p = pipeline(4.0, 4.0);
    assert_eq!(send_all(&mut p, ms(0)), [0, 1, 2, 3]);
    p.set_last(3).unwrap();
    for segment in [3, 1, 0, 2] {
        assert_eq!(p.on_data(ms(10), segment, segment * 10, Mark::None), Arrival::New);
    }
    assert_eq!(p.on_data(ms(11), 2, 0, Mark::None), Arrival::Duplicate);
    assert_eq!(drain(&mut p), [0, 10, 20, 30]);
    assert!(p.is_done());
}

#[test]
fn the_window_bounds_what_is_in_flight_and_the_reorder_bound_what_is_ahead() {
    let mut p = pipeline(1000.0, 1000.0);
    p.options.reorder_max = 8;
    assert_eq!(send_all(&mut p, ms(0)).len(), 8);
    for segment in 1..8 {
        p.on_data(ms(1), segment, segment, Mark::None);
    }
    assert_eq!(send_all(&mut p, ms(1)), [] as [u64; 0], "segment 0 holds the others back");
    p.on_data(ms(2), 0, 0, Mark::None);
    assert_eq!(drain(&mut p).len(), 8);
    assert_eq!(send_all(&mut p, ms(2)), (8..16).collect::<Vec<_>>());
}

#[test]
fn losses_of_one_round_trip_cut_the_window_once() {
    let mut p = pipeline(16.0, 16.0);
    assert_eq!(send_all(&mut p, ms(0)).len(), 16);
    // Nothing arrives: the first timeout comes after the initial second.
    assert_eq!(p.next_timer(), ms(1000));
    p.on_timer(ms(1000)).unwrap();
    assert_eq!(p.counters().timeouts, 16);
    assert_eq!(p.counters().cuts, 1);
    assert!((p.window() - 8.0).abs() < 1e-9);
    assert_eq!(p.rtt().rto(), Duration::from_secs(2), "backed off once");
    // The lost ones go first, in order, as far as the window allows.
    assert_eq!(send_all(&mut p, ms(1000)), (0..8).collect::<Vec<_>>());
    assert_eq!(p.counters().retransmitted, 8);
}

#[test]
fn marks_cut_without_retransmission_and_once_per_round_trip() {
    let mut p = pipeline(10.0, 10.0);
    send_all(&mut p, ms(0));
    p.on_data(ms(20), 0, 0, Mark::Congested);
    p.on_data(ms(20), 1, 1, Mark::Congested);
    assert!((p.window() - 5.0).abs() < 1e-9);
    assert_eq!((p.counters().marks, p.counters().cuts, p.counters().retransmitted), (2, 1, 0));
    for segment in 2..10 {
        p.on_data(ms(21), segment, segment, Mark::None);
    }
    let after = p.window();
    assert_eq!(send_all(&mut p, ms(21))[0], 10);
    p.on_data(ms(40), 10, 10, Mark::Congested);
    assert!((p.window() - after / 2.0).abs() < 1e-9, "segment 10 was sent after the cut");
}

#[test]
fn ignored_marks_grow_the_window_as_any_data() {
    let mut p = pipeline(2.0, 100.0);
    p.options.ignore_marks = true;
    send_all(&mut p, ms(0));
    p.on_data(ms(20), 0, 0, Mark::Congested);
    assert!((p.window() - 3.0).abs() < 1e-9);
}

#[test]
fn a_congestion_nack_is_a_loss() {
    let mut p = pipeline(8.0, 8.0);
    send_all(&mut p, ms(0));
    p.on_congestion_nack(ms(5), 3).unwrap();
    p.on_congestion_nack(ms(5), 4).unwrap();
    assert_eq!(p.counters().cuts, 1);
    assert!((p.window() - 4.0).abs() < 1e-9);
    for segment in [0, 1, 2] {
        p.on_data(ms(6), segment, segment, Mark::None);
    }
    assert_eq!(send_all(&mut p, ms(6))[0], 3);
}

#[test]
fn an_overtaken_segment_is_asked_for_again_before_its_timeout() {
    let mut p = pipeline(8.0, 8.0);
    send_all(&mut p, ms(0));
    for segment in [0, 1, 2, 4, 5] {
        p.on_data(ms(4), segment, segment, Mark::None);
    }
    drain(&mut p);
    assert!(p.next_timer() >= ms(200), "two later ones may be a matter of order");
    p.on_data(ms(4), 6, 6, Mark::None);
    let due = p.next_timer();
    assert!(due < ms(30), "{due:?}");
    p.on_timer(due).unwrap();
    assert_eq!((p.counters().timeouts, p.counters().cuts), (1, 1));
    assert_eq!(send_all(&mut p, due)[0], 3);
    assert!(p.rtt().rto() < ms(400).since(ms(0)), "no backoff");
}

#[test]
fn a_refused_segment_is_asked_for_again_later_and_does_not_cut() {
    let mut p = pipeline(2.0, 2.0);
    send_all(&mut p, ms(0));
    assert_eq!(p.on_refusal(ms(1), 0), 1);
    assert_eq!(p.next_timer(), ms(101));
    p.on_timer(ms(101)).unwrap();
    assert_eq!(send_all(&mut p, ms(101)), [0]);
    assert_eq!(p.on_refusal(ms(102), 0), 2);
    assert_eq!(p.counters().cuts, 0);
    assert_eq!(p.next_timer(), ms(302));
}

#[test]
fn a_segment_lost_as_often_as_allowed_ends_the_fetch_and_waits_longer_each_time() {
    let mut p = pipeline(1.0, 1.0);
    p.options.retries_max = 3;
    p.options.rtt.rto_initial = Duration::from_millis(200);
    p.rtt = RttEstimator::new(p.options.rtt);
    p.set_last(0).unwrap();
    send_all(&mut p, ms(0));
    let mut at = Vec::new();
    let end = loop {
        let now = p.next_timer();
        at.push(now.0 / 1_000_000);
        match p.on_timer(now) {
            Ok(()) => _ = send_all(&mut p, now),
            Err(Exhausted(segment)) => break segment,
        }
    };
    assert_eq!(end, 0);
    // 200; backed off once by the cut: 400; then doubled per retransmission.
    assert_eq!(at, [200, 600, 1400, 3000]);
}

#[test]
fn the_end_may_move_both_ways_but_not_before_what_was_handed_out() {
    let mut p = pipeline(10.0, 10.0);
    send_all(&mut p, ms(0));
    p.set_last(20).unwrap();
    p.set_last(4).unwrap();
    assert_eq!(p.next(), 5);
    for segment in 0..5 {
        p.on_data(ms(1), segment, segment, Mark::None);
    }
    assert_eq!(drain(&mut p).len(), 5);
    assert!(p.is_done());
    assert_eq!(p.set_last(2), Err(EndsBefore(5)));
    p.set_last(7).unwrap();
    assert_eq!(send_all(&mut p, ms(2)), [5, 6, 7]);
}

#[test]
fn retransmitted_segments_give_no_sample() {
    let mut p = pipeline(1.0, 1.0);
    send_all(&mut p, ms(0));
    p.on_timer(ms(1000)).unwrap();
    send_all(&mut p, ms(1000));
    p.on_data(ms(1001), 0, 0, Mark::None);
    assert_eq!(p.rtt().smoothed(), None);
}

#[test]
fn a_pause_keeps_what_was_received_and_asks_again_for_the_rest() {
    let mut p = pipeline(8.0, 8.0);
    send_all(&mut p, ms(0));
    p.on_data(ms(1), 2, 2, Mark::None);
    p.pause();
    assert_eq!((send_all(&mut p, ms(2)).len(), p.next_timer()), (0, Tick::NEVER));
    p.resume();
    assert_eq!(send_all(&mut p, ms(60_000)), [0, 1, 3, 4, 5, 6, 7, 8]);
    assert_eq!(p.counters().timeouts, 0);
}

#[test]
fn slow_start_ends_when_the_round_trip_grows() {
    let window = WindowOptions { initial: 16.0, ..WindowOptions::default() };
    let law = WindowLaw::Aimd(AimdOptions { window, ..AimdOptions::default() });
    let mut p = Pipeline::new(PipelineOptions { law, ..PipelineOptions::default() }, 0);
    let mut now = 0;
    for (round, rtt) in [10, 10, 10, 30].into_iter().enumerate() {
        let sent = send_all(&mut p, ms(now));
        now += rtt;
        for segment in sent {
            p.on_data(ms(now), segment, segment, Mark::None);
        }
        drain(&mut p);
        assert_eq!(p.window.in_slow_start(), round < 3, "round {round}");
    }
}
