//! One suite over both ledgers, and what only one of them can go through.
//!
//! A case that is missing from the list below is never run, and the compiler says so.

mod moving;
mod only_postgres;
mod only_sqlite;
mod orders;
mod products;
mod racing;
mod settling;
mod store;

macro_rules! over_every_ledger {
    ($($subject:ident { $($case:ident)* })*) => {
        mod postgres {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$subject::$case(&super::store::Store::postgres().await).await;
                }
            )*)*
        }

        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$subject::$case(&super::store::Store::sqlite().await).await;
                }
            )*)*
        }
    };
}

over_every_ledger! {
    products {
        a_product_is_kept_as_it_was_created
        stock_is_split_evenly
        the_largest_product_can_be_created
        a_taken_sku_creates_nothing
        one_of_many_creators_wins
        an_unknown_product_has_nothing
        products_are_listed_in_sku_order
    }
    settling {
        a_batch_is_inserted_and_its_units_are_taken
        the_last_unit_can_be_sold
        a_lower_fence_changes_nothing
        an_equal_fence_settles_again
        a_fence_counts_for_its_segment_only
        an_older_epoch_changes_nothing
        more_than_is_left_changes_nothing
        a_batch_is_settled_as_a_whole
        a_known_order_takes_no_second_unit
        a_repeated_batch_changes_nothing
        a_repeated_batch_without_room_is_refused
        a_key_counts_once_within_a_batch
        a_key_counts_once_among_all_segments_and_products
        the_same_key_of_another_customer_is_another
        a_failed_statement_changes_nothing
    }
    racing {
        the_same_orders_on_two_segments_are_settled_once
        holders_of_one_segment_conserve_its_units
        a_reload_among_settles_counts_them
    }
    moving {
        a_reload_tells_what_is_left
        a_reload_outruns_the_ledgers_fence
        a_reload_shuts_out_older_leases
        a_reload_tells_the_epoch
        gathered_units_move
        a_stale_leg_moves_nothing
        a_giver_keeps_what_is_taken
        gathering_stores_the_fences
    }
    orders {
        an_order_is_found_by_its_id
        settled_orders_are_found_by_id_and_by_key
        every_customer_id_survives
        orders_are_listed_in_order_of_time
        a_list_can_be_narrowed
        customers_with_alike_keys_are_kept_apart
        a_list_goes_on_after_a_page
        only_reserved_units_are_held
        keys_come_in_pages
        only_live_orders_add_up
    }
}
