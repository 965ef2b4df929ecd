//! The words around the flags are part of both contracts.

const PAGE: &str = include_str!("../../docs/evidence.md");

#[test]
fn the_page_never_calls_a_flag_verified_valid_trusted_or_successful() {
    for word in PAGE.split(|character: char| !character.is_alphanumeric()) {
        let word = word.to_lowercase();
        assert!(!["verified", "valid", "trusted", "successful"].contains(&word.as_str()), "`{word}`");
    }
}

#[test]
fn the_page_speaks_of_every_field_and_of_the_reserved_kinds() {
    for field in [
        "`visible`",
        "`source_kind`",
        "`task_ref_visible`",
        "`message_ref_visible`",
        "`agent_card_visible`",
        "`agent_card_source_kind`",
        "`extended_card_access_visible`",
        "`signature_material_visible`",
    ] {
        assert!(PAGE.contains(field), "{field}");
    }
    assert!(PAGE.contains("`typed_payload` and `unmapped` are reserved"));
}
