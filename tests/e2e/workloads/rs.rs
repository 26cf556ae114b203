// SPDX-License-Identifier: Apache-2.0
//! Rust names: a generic function, a method of a trait, a closure.
use std::hint::black_box;
use std::time::{Duration, Instant};

mod engine {
    use super::black_box;

    pub trait Gear {
        fn turn(&self, by: u64) -> u64;
    }

    pub struct Wheel<T>(pub T);

    impl Gear for Wheel<u32> {
        #[inline(never)]
        fn turn(&self, by: u64) -> u64 {
            burn::<u32>(by)
        }
    }

    #[inline(never)]
    pub fn burn<T: Default>(turns: u64) -> u64 {
        let mut x = 1u64;
        for i in 0..turns {
            x = black_box(x.wrapping_mul(31).wrapping_add(i));
        }
        black_box(T::default());
        x
    }
}

fn main() {
    use engine::Gear;
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < deadline {
        black_box(engine::Wheel(1u32).turn(10_000_000));
    }
}
