//! Calls a decoder that panics on damaged input.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The result of `decode`, or `None` if it panicked; a panic in here is neither printed nor passed on.
pub(crate) fn catch_quietly<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
    GUARDED.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode)).ok();
    GUARDED.set(false);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_an_answer_and_one_outside_still_is_a_panic() {
        assert_eq!(catch_quietly(|| 1), Some(1));
        assert_eq!(catch_quietly(|| -> u8 { panic!("damaged") }), None);
        assert!(!GUARDED.get(), "later panics are told again");
    }
}
