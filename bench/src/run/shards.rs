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
    let mut alone = None;
    for shards in SHARDS {
        let mut plain = None;
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
            let (one, same) = (*alone.get_or_insert(each), *plain.get_or_insert(each));
            let share = |of: f64| format!("{:.1}%", each / of * 100.0);
            println!("{case:<43} {each:>12.0} {:>13}  {}", share(same), share(one));
        }
    }
    Ok(())
}
