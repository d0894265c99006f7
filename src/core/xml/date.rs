//! Dates as feeds write them: RFC 3339 and its relatives, and the RFC 822 family.

use crate::model::Time;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The longest text that is read as a date, in bytes.
const DATE_LIMIT: usize = 128;

/// Reads a date; `None` where it cannot be read. A date without a zone is taken for UTC.
pub fn date(text: &str) -> Option<Time> {
    let text = text.trim();
    if text.is_empty() || text.len() > DATE_LIMIT {
        return None;
    }
    // Most dates of RSS begin with a weekday, and no other form does. To have one refused is dear.
    if text.starts_with(char::is_alphabetic) {
        return rfc822(text);
    }
    let day_first = || iso(&day_first(text)?);
    Time::parse_rfc3339(text).ok().or_else(|| iso(text)).or_else(day_first).or_else(|| rfc822(text))
}

/// `20.11.2026 10:00` and `20/11/2026` with the year in front. With slashes, only what cannot be the month is the day.
fn day_first(text: &str) -> Option<String> {
    let mark = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| matches!(c, '.' | '/'))?;
    let mut parts = text.splitn(3, mark);
    let (first, second, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, clock) = rest.split_at_checked(4)?;
    let [day, month] = match mark {
        '/' if digits::<i8>(first)? <= 12 && digits::<i8>(second)? <= 12 => return None,
        '/' if digits::<i8>(first)? <= 12 => [second, first],
        _ => [first, second],
    };
    Some(format!("{year}/{month}/{day}{clock}"))
}

/// Reads a date-time that is well-formed, of RFC 3339 or RFC 2822: for formats that are not guessed
/// at.
pub fn well_formed_date(text: &str) -> Option<Time> {
    Time::parse_rfc3339(text).ok().or_else(|| Time::parse_rfc2822(text))
}

/// `2026-11-20`, `2026-11-20T16:20`, `2026-11-20 16:20:05.5 +0100` and the like (W3C-DTF and its
/// neighbours), `2026.11.20 16:20`, `2026/11/2` and `2026年4月29日`.
fn iso(text: &str) -> Option<Time> {
    let (year, mut rest) = (text.get(..4)?, text.get(4..)?);
    let year: i16 = digits(year)?;
    let marks = match rest.chars().next() {
        Some('年') => ['年', '月'],
        Some(mark @ ('.' | '/')) => [mark, mark],
        _ => ['-', '-'],
    };
    let mut month_and_day = [1, 1];
    for (part, mark) in month_and_day.iter_mut().zip(marks) {
        // With dashes both may be left out, and have two digits where they are not.
        let is_dash = mark == '-';
        let Some(behind) = rest.strip_prefix(mark) else {
            if is_dash { break } else { return None }
        };
        let digits_end = behind.bytes().take_while(u8::is_ascii_digit).count();
        let length = if is_dash { 2 } else { digits_end };
        let (number, behind) = behind.split_at_checked(length)?;
        (*part, rest) = (digits(number)?, behind);
    }
    let [month, day] = month_and_day;
    let is_mark = |c| matches!(c, 'T' | 't' | ' ') || c == '日' && marks.contains(&'月');
    let rest = rest.trim_start_matches(is_mark);
    if rest.is_empty() {
        return time(year, month, day, (0, 0, 0), 0);
    }
    let split = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.' | ','));
    let (clock, zone) = rest.split_at_checked(split.unwrap_or(rest.len()))?;
    let (clock, zone) = (clock_time(clock)?, zone.trim());
    let (half, behind) = zone.split_once(' ').unwrap_or((zone, ""));
    let (clock, zone) = in_half(clock, half).map_or((clock, zone), |clock| (clock, behind));
    time(year, month, day, clock, offset(zone)?)
}

/// `Fri, 20 Nov 2026 16:20:05 GMT` and what is made of it: without weekday or seconds, with a
/// two-digit year, with names in full or of other languages, with the month first, with dashes. The
/// weekday is not believed, as the specifications' own samples are wrong about it.
fn rfc822(text: &str) -> Option<Time> {
    let mut day = None;
    let mut month = None;
    let mut year: Option<i16> = None;
    let mut clock = None;
    let mut zone = 0;
    for word in text.split([' ', ',', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
        if word.starts_with('(') {
            break;
        }
        if word.contains(':') && clock.is_none() {
            let split = word.find(['+', '-']).unwrap_or(word.len());
            let (time, rest) = word.split_at_checked(split)?;
            let letters = time.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(time.len());
            let (time, name) = time.split_at_checked(letters)?;
            clock = Some(clock_time(time)?);
            zone = offset(if rest.is_empty() { name } else { rest })?;
        } else if clock.is_some()
            && (year.is_some()
                || month.is_some() && !word.starts_with(|c: char| c.is_ascii_digit()))
        {
            // Behind the time of day stands the zone; `PM` is for a clock of twelve hours.
            match clock.and_then(|clock| in_half(clock, word)) {
                Some(whole) => clock = Some(whole),
                None => {
                    zone = offset(word)?;
                    if year.is_some() {
                        break;
                    }
                }
            }
        } else {
            for part in word.split('-').filter(|part| !part.is_empty()) {
                take_part(part, &mut day, &mut month, &mut year);
            }
        }
    }
    time(year?, month?, day?, clock.unwrap_or((0, 0, 0)), zone)
}

fn take_part(part: &str, day: &mut Option<i8>, month: &mut Option<i8>, year: &mut Option<i16>) {
    // `1.`, `1er` and `1st` are numbers.
    let part = match part.starts_with(|c: char| c.is_ascii_digit()) {
        true => part.trim_end_matches(|c: char| c == '.' || c.is_alphabetic()),
        false => part,
    };
    if let Some(number) = digits::<i16>(part) {
        match (part.len(), &day) {
            (1 | 2, None) => *day = i8::try_from(number).ok(),
            (2, Some(_)) if year.is_none() => {
                // RFC 2822 section 4.3.
                *year = Some(if number < 50 { number + 2000 } else { number + 1900 });
            }
            (4, _) if year.is_none() => *year = Some(number),
            _ => {}
        }
    } else {
        // The last one counts: `mar` is a Tuesday as well.
        *month = month_of(part).or(*month);
    }
}

/// How the names of months begin: in English, German, French, Italian, Spanish, Portuguese, Dutch,
/// Afrikaans, Slovak, Russian and Bulgarian.
const MONTHS: [&[&str]; 12] = [
    &["jan", "jän", "gen", "ene", "янв", "яну"],
    &["feb", "fev", "fév", "фев"],
    &["mar", "mär", "maer", "mrz", "maar", "mrt", "мар"],
    &["apr", "avr", "abr", "апр"],
    &["may", "mai", "mag", "mei", "máj", "май", "мая"],
    &["jun", "juin", "jún", "giu", "июн", "юни"],
    &["jul", "juil", "júl", "lug", "июл", "юли"],
    &["aug", "aou", "aoû", "ago", "авг"],
    &["sep", "set", "сен", "сеп"],
    &["oct", "okt", "out", "ott", "окт"],
    &["nov", "ноя", "ное"],
    &["dec", "dez", "déc", "dic", "des", "дек"],
];

/// How the days of the week begin in English, and no month.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn month_of(word: &str) -> Option<i8> {
    // Most dates begin with one.
    let start = word.get(..3).unwrap_or_default();
    if DAYS.iter().any(|day| day.eq_ignore_ascii_case(start)) {
        return None;
    }
    let word = word.to_lowercase();
    let is_so_called = |names: &&[&str]| names.iter().any(|name| word.starts_with(name));
    MONTHS.iter().zip(1..).find(|(names, _)| is_so_called(names)).map(|(_, number)| number)
}

fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `16:20`, `16:20:05`, `16:20:05.123`.
fn clock_time(text: &str) -> Option<(i8, i8, i8)> {
    let whole = text.split(['.', ',']).next().unwrap_or_default();
    let mut parts = whole.split(':');
    let hour = digits(parts.next()?)?;
    let minute = digits(parts.next()?)?;
    let second = parts.next().map_or(Some(0), digits)?;
    if parts.next().is_some() { None } else { Some((hour, minute, second)) }
}

/// A time of day on a clock of twelve hours; `None` if the word names no half of a day.
fn in_half((hour, minute, second): (i8, i8, i8), half: &str) -> Option<(i8, i8, i8)> {
    let hour = match (half.to_ascii_uppercase().as_str(), hour) {
        ("PM", ..12) => hour + 12,
        ("AM", 12) => 0,
        ("PM" | "AM", _) => hour,
        _ => return None,
    };
    Some((hour, minute, second))
}

/// Seconds east of UTC. Names of zones beyond RFC 822's are those that feeds use; a single letter
/// is UTC, as RFC 2822 says. Unknown names are UTC too: better an hour off than no date.
fn offset(text: &str) -> Option<i32> {
    let text = text.trim();
    let sign = match text.bytes().next() {
        None => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return Some(named(text)),
    };
    let numbers: String = text.chars().skip(1).filter(char::is_ascii_digit).collect();
    let (hours, minutes): (i32, i32) = match numbers.len() {
        1 | 2 => (digits(&numbers)?, 0),
        3 => (digits(numbers.get(..1)?)?, digits(numbers.get(1..)?)?),
        4 => (digits(numbers.get(..2)?)?, digits(numbers.get(2..)?)?),
        _ => return None,
    };
    if minutes >= 60 { None } else { Some(sign * (hours * 3600 + minutes * 60)) }
}

/// Seconds east of UTC.
fn named(zone: &str) -> i32 {
    let name = zone.to_ascii_uppercase();
    if let Some(rest) = name.strip_prefix("GMT").or_else(|| name.strip_prefix("UTC"))
        && rest.starts_with(['+', '-'])
    {
        return offset(rest).unwrap_or(0);
    }
    let minutes = match name.as_str() {
        "HST" => -600,
        "AKST" => -540,
        "PST" | "AKDT" => -480,
        "MST" | "PDT" => -420,
        "CST" | "MDT" => -360,
        "EST" | "CDT" => -300,
        "EDT" | "AST" => -240,
        "NST" => -210,
        "ADT" | "BRT" | "ART" => -180,
        "NDT" => -150,
        "BST" | "CET" | "MET" | "MEZ" | "WEST" | "WESZ" | "HNEC" => 60,
        "CEST" | "MEST" | "MESZ" | "HAEC" | "EET" | "OEZ" | "SAST" => 120,
        "EEST" | "OESZ" | "MSK" => 180,
        "PKT" => 300,
        "IST" => 330,
        "NPT" => 345,
        "ICT" | "WIB" => 420,
        "HKT" | "SGT" | "AWST" | "PHT" => 480,
        "JST" | "KST" => 540,
        "ACST" => 570,
        "AEST" => 600,
        "ACDT" => 630,
        "AEDT" => 660,
        "NZST" => 720,
        "NZDT" => 780,
        _ => 0,
    };
    minutes * 60
}

fn time(year: i16, month: i8, day: i8, clock: (i8, i8, i8), offset: i32) -> Option<Time> {
    let (hour, minute, second) = clock;
    // Midnight at the end of a day, and leap seconds.
    let (hour, later) = if (hour, minute, second) == (24, 0, 0) { (0, 86_400) } else { (hour, 0) };
    let civil = DateTime::new(year, month, day, hour, minute, second.min(59), 0).ok()?;
    let offset = Offset::from_seconds(offset).ok()?;
    let seconds = offset.to_timestamp(civil).ok()?.as_second() + later;
    let time = Time::from_unix(seconds);
    if time.unix() == seconds { Some(time) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_feeds_write() {
        for (written, expected) in [
            ("2026-11-20T16:20:05Z", "2026-11-20T16:20:05Z"),
            ("2026-11-20T16:20:05.25+01:00", "2026-11-20T15:20:05Z"),
            ("2026-11-20T16:20:05", "2026-11-20T16:20:05Z"),
            ("2026-11-20 16:20", "2026-11-20T16:20:00Z"),
            ("2026-11-20 16:20:05 +0100", "2026-11-20T15:20:05Z"),
            ("2026-11-20T16:20+0100", "2026-11-20T15:20:00Z"),
            ("2026-11-20", "2026-11-20T00:00:00Z"),
            ("2026-11", "2026-11-01T00:00:00Z"),
            ("2026.04.29 21:42", "2026-04-29T21:42:00Z"),
            ("2026/4/9", "2026-04-09T00:00:00Z"),
            ("2026/04/29 21:42:05 +0900", "2026-04-29T12:42:05Z"),
            ("May 09, 2006", "2006-05-09T00:00:00Z"),
            ("2005", "2005-01-01T00:00:00Z"),
            ("Fri, 20 Nov 2026 16:20:05 GMT", "2026-11-20T16:20:05Z"),
            ("Tue, 1 Nov 2004 16:20:05 GMT", "2004-11-01T16:20:05Z"),
            ("20 Nov 2026 16:20 EST", "2026-11-20T21:20:00Z"),
            ("Sat, 24 Jan 2004 19:38 UT", "2004-01-24T19:38:00Z"),
            ("Fri, 20 Nov 26 16:20:05 PDT", "2026-11-20T23:20:05Z"),
            ("Fri, 20 Nov 99 16:20:05 -0130", "1999-11-20T17:50:05Z"),
            ("Friday, 20-Nov-26 16:20:05 Z", "2026-11-20T16:20:05Z"),
            ("Fri, 20 November 2026 16:20:05 +0000 (UTC)", "2026-11-20T16:20:05Z"),
            ("Nov 20, 2026 4:20 PM", "2026-11-20T16:20:00Z"),
            ("Fri Nov 20 16:20:05 UTC 2026", "2026-11-20T16:20:05Z"),
            ("Fri, 20 Nov 2026", "2026-11-20T00:00:00Z"),
            ("Fri, 20 Nov 2026 24:00:00 GMT", "2026-11-21T00:00:00Z"),
            ("Fri, 20 Nov 2026 16:20:60 GMT", "2026-11-20T16:20:59Z"),
            ("Mon, 01 Jan 0001 00:00:00 +0000", "0001-01-01T00:00:00Z"),
            ("Fri, 20 Nov 2026 16:20:05 GMT+2", "2026-11-20T14:20:05Z"),
            ("Fri, 20 Nov 2026 16:20:05 GMT+0545", "2026-11-20T10:35:05Z"),
            ("Fri, 20 Nov 2026 16:20:05 UTC-09:30", "2026-11-21T01:50:05Z"),
            ("Fri Nov 20 16:20:05 EST 2026", "2026-11-20T21:20:05Z"),
            ("Fr, 20 Nov 2026 16:20:05 MEZ", "2026-11-20T15:20:05Z"),
            ("Fr., 20. Mai 2026 16:20 MESZ", "2026-05-20T14:20:00Z"),
            ("20. Dezember 2026 um 16:20 Uhr", "2026-12-20T16:20:00Z"),
            ("Mi, 4 Mär 2026 16:20:05 +0100", "2026-03-04T15:20:05Z"),
            ("mar., 3 févr. 2026 16:20:05 +0100", "2026-02-03T15:20:05Z"),
            ("mardi 1er août 2026", "2026-08-01T00:00:00Z"),
            ("12 juin 2026", "2026-06-12T00:00:00Z"),
            ("12 JUILLET 2026", "2026-07-12T00:00:00Z"),
            ("mar, 3 mar 2026 16:20:05 GMT", "2026-03-03T16:20:05Z"),
            ("20 de setembro de 2026", "2026-09-20T00:00:00Z"),
            ("20 gennaio 2026", "2026-01-20T00:00:00Z"),
            ("maandag 20 maart 2026", "2026-03-20T00:00:00Z"),
            ("Пт, 20 мая 2026 16:20:05 +0300", "2026-05-20T13:20:05Z"),
            ("2026年4月29日 21:42", "2026-04-29T21:42:00Z"),
            ("2026年04月29日21:42", "2026-04-29T21:42:00Z"),
            ("2026年4月29", "2026-04-29T00:00:00Z"),
            ("2026/011/20", "2026-11-20T00:00:00Z"),
            ("2026.4.029T21:42", "2026-04-29T21:42:00Z"),
            ("2026/11/20 16:20", "2026-11-20T16:20:00Z"),
            ("2026-11T16:20", "2026-11-01T16:20:00Z"),
            ("20.11.2026 16:20", "2026-11-20T16:20:00Z"),
            ("5.11.2026", "2026-11-05T00:00:00Z"),
            ("20/11/2026 16:20", "2026-11-20T16:20:00Z"),
            ("11/20/2026", "2026-11-20T00:00:00Z"),
            ("11/20/2026 4:20:05 PM", "2026-11-20T16:20:05Z"),
            ("20/11/2026 12:20am +0100", "2026-11-19T23:20:00Z"),
            ("2026T16:20", "2026-01-01T16:20:00Z"),
        ] {
            let read = date(written).map(|t| t.to_string()).unwrap_or_default();
            assert_eq!(read, expected, "{written}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_no_date() {
        let bad = "|yesterday|2026-13-01|2026.13.01|2026.04/29|2026-1-5|2026-01-5|2026-1-05|\
            2026-001-05|2026-11-200|2026-11-20日|2026/11/20日|2026/11|2026/11/|2026.11|\
            2026.11 16:20|2026/11-20|2026/11/2016:20|2026年4|2026年4月|2026年|31 Feb 2026 10:00 GMT|\
            20 Nov 2026 25:00:00 GMT|20 Nov 2026 10:00:00 +9999|20 Nov|5/11/2026|20.11/2026|32.1.2026|١٢ نوفمبر";
        for bad in bad.split('|').chain(["1".repeat(500).as_str()]) {
            assert_eq!(date(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn reads_its_own_forms(seconds in -62_135_596_800i64..253_402_207_200) {
            let time = Time::from_unix(seconds);
            proptest::prop_assert_eq!(date(&time.to_string()), Some(time));
            proptest::prop_assert_eq!(date(&time.rfc822()), Some(time));
        }
    }
}
