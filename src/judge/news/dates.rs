use super::NewsRule;
use super::addresses::OUTLINE_ADDRESSES;
use super::field::FieldKind;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule { name: "dates", sentence: "when it was published, updated and so on" },
    class: NoiseClass::Dates,
    is_noise: |field, value| {
        let may_be = match field.kind {
            FieldKind::Element => true,
            FieldKind::Outline => !field.is_outline(&OUTLINE_ADDRESSES),
            _ => false,
        };
        // A candidate is no date.
        let is_called = || {
            TIMES.iter().any(|parts| field.is_called(parts))
                && value.contains(|c: char| c.is_ascii_digit())
        };
        may_be
            && (is_called() || reads_as_date(value))
            && !APPOINTMENTS.iter().any(|names| field.is_named(names))
    },
};

/// Parts of names that tell of a time.
const TIMES: [&[&str]; 2] = [
    &["date", "time", "updated", "published", "modified"],
    &["issued", "created", "valid", "embargo", "lastmod"],
];

/// The names of times that an entry is about: readers must hear of an event that was moved.
const APPOINTMENTS: [&[&str]; 2] = [
    &["startdate", "enddate", "starttime", "endtime", "start", "end"],
    &["dtstart", "dtend", "deadline"],
];

/// Whether a whole value is a date-time in one of the forms that feeds use.
fn reads_as_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = || bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if !(10..=48).contains(&bytes.len()) || digits() < 6 {
        return false;
    }
    let iso = matches!(bytes.get(4), Some(b'-' | b'.' | b'/'))
        && bytes.get(7) == bytes.get(4)
        && bytes.iter().take(4).all(u8::is_ascii_digit);
    let clock = value.matches(':').count() >= 1;
    let month =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = value.to_ascii_lowercase();
    iso || (clock && month.iter().any(|m| lower.contains(m)))
}
