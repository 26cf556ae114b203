// SPDX-License-Identifier: Apache-2.0
//! Works for some seconds under Pyroscope's own agent, which sends what it saw: pyroscope_rust URL SECONDS
use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::time::{Duration, Instant};

#[inline(never)]
fn known_leaf(n: u64) -> u64 {
    (0..n).fold(0, |sum, i| std::hint::black_box(sum + i * i % 7))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let agent = PyroscopeAgentBuilder::new(&args[1], "rust.shop", 100, "pyroscope-rs", "test",
        pprof_backend(PprofConfig::default(), BackendConfig::default()))
        .tags(vec![("region", "eu")])
        .build()?;
    let running = agent.start()?;
    let (add_tag, remove_tag) = running.tag_wrapper();
    let end = Instant::now() + Duration::from_secs(args[2].parse()?);
    while Instant::now() < end {
        for order in ["small", "large"] {
            add_tag("order".to_string(), order.to_string())?;
            known_leaf(if order == "large" { 60_000_000 } else { 20_000_000 });
            remove_tag("order".to_string(), order.to_string())?;
        }
    }
    let ready = running.stop()?;
    ready.shutdown();
    Ok(())
}
