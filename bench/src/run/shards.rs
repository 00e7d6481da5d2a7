//! Instructions of an exchange by the number of forwarding threads, and what an Interest with
//! CanBePrefix that waits adds to that.

use super::{Run, output, own};
use anyhow::Result;
use std::process::Command;

const SHARDS: [u32; 3] = [1, 2, 4];
/// Interests in flight, and rounds of as many exchanges.
const WINDOW: u32 = 64;
const ROUNDS: u32 = 250;

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    println!("\nshards: user instructions of an exchange of a whole node, 64 in flight");
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: there is no valgrind");
        return Ok(());
    }
    println!("{:<43} {:>12} {:>13}  of one thread's", "case", "instructions", "of not asked");
    for shards in SHARDS {
        for asked in [false, true] {
            let case = format!("shards={shards},asked={}", if asked { "prefix" } else { "no" });
            if !case.contains(&context.args.case) {
                continue;
            }
            let mut count = own()?;
            count.args(["instructions", &format!("--shards={shards}")]);
            count.args([format!("--window={WINDOW}"), format!("--rounds={ROUNDS}")]);
            if asked {
                count.arg("--asked");
            }
            let all: f64 = output(&mut count)?;
            let each = all / f64::from(WINDOW * ROUNDS);
            context.report.add("shards", &case, "onym", "instructions", each);
            // Where the case that it is compared with was left out, there is no share.
            let share = |shards: u32| {
                let plain = format!("shards={shards},asked=no");
                let of = context.report.value("shards", &plain, "onym", "instructions");
                of.map_or(String::new(), |of| format!("{:.1}%", each / of * 100.0))
            };
            println!("{case:<43} {each:>12.0} {:>13}  {}", share(shards), share(1));
        }
    }
    Ok(())
}
