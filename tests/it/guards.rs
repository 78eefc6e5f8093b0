//! One suite over all guards, and what only Redis can go through.
//!
//! A case that is missing from the list below is never run, and the compiler says so.

mod counts;
mod keeping;
mod leases;
mod only_redis;
mod under;

macro_rules! over_every_guard {
    ($($subject:ident { $($case:ident)* })*) => {
        mod memory {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$subject::$case(super::under::Kind::Memory).await;
                }
            )*)*
        }

        mod redis {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$subject::$case(super::under::Kind::Redis).await;
                }
            )*)*
        }
    };
}

over_every_guard! {
    leases {
        a_held_segment_is_busy
        segments_are_leased_apart
        a_released_segment_can_be_leased_at_once
        an_overtaken_holder_changes_nothing
        a_stranger_cannot_release
        a_lease_ends_with_its_time_limit
        renewing_starts_the_time_limit_anew
        an_expired_lease_cannot_be_renewed
        the_same_token_gets_the_same_lease_again
        the_same_token_starts_the_time_limit_anew
        an_expired_token_is_a_stranger
        a_second_release_changes_nothing
        one_of_a_hundred_contenders_wins
        many_holders_lose_no_unit
    }
    counts {
        an_unseen_segment_needs_a_reload
        a_clean_count_is_handed_on
        an_empty_segment_is_not_leased
        a_dirty_release_needs_a_reload
        a_clean_release_without_a_reload_stays_dirty
        an_untrusted_count_needs_a_reload
        an_untrusted_empty_segment_is_leased
        added_units_raise_the_count
        every_lease_has_a_higher_fence
        a_reload_carries_the_fence_and_the_epoch_on
        fences_grow_past_the_ledgers_after_everything_is_forgotten
        what_is_held_can_be_inspected
    }
    keeping {
        long_work_keeps_the_lease
        nothing_renews_after_the_work
        interrupted_work_renews_nothing
        a_loss_lets_the_work_complete
        after_a_loss_the_next_lease_is_kept_again
    }
}
