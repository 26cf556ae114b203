// SPDX-License-Identifier: Apache-2.0
//! Rust names: a generic function, a method of a trait, a closure.
use std::time::{Duration, Instant};

/// std::hint::black_box came with Rust 1.66; Debian 12 has 1.63.
fn black_box<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

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
    pub fn burn<T: Copy + Default>(turns: u64) -> u64 {
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
