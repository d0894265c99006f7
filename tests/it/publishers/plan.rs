//! What a publisher is like and what it does, as values that proptest generates and shrinks.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub struct Plan {
    pub site: Site,
    pub posts: u8,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Site {
    pub atom: bool,
    pub window: Window,
    pub order: Order,
    pub ids: Ids,
    pub path: PathStyle,
    pub unlinked: bool,
    pub dates: Dates,
    pub untitled: bool,
    /// Whether an older post comes back where one is taken away from a full window.
    pub backfills: bool,
    /// An old post that stays at the top or the bottom for ever.
    pub pinned: Pinned,
    /// Whether every document has other counters, stamps and tracking parameters.
    pub noisy: bool,
    pub poll_minutes: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The newest so many.
    Count(u8),
    /// Those of the last so many days.
    Span(u8),
    /// Those of the last so many days, but at least so many.
    SpanAtLeast(u8, u8),
    Monthly,
    /// Those of the present issue, so many each.
    Issue(u8),
    /// All, and the document says so.
    Complete,
    Growing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    NewestFirst,
    OldestFirst,
    ByUpdate,
    /// By a rank that goes up and down; a front page.
    Ranked,
    /// In an order that has nothing to do with time.
    Unsorted,
    /// From so many sources with a window each, newest first over all.
    Merged(u8),
    /// From so many sources with a window each, one source after the other.
    Blocks(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids {
    /// A name that says nothing and never changes.
    Opaque,
    Address,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStyle {
    Number,
    Title,
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    True,
    /// The day alone, so that posts share dates.
    Day,
    /// The time of the build, for all.
    Build,
    /// The year 1, for all.
    Ancient,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    No,
    Top,
    Bottom,
}

/// Something happens, and the document that shows it stays so many hours.
#[derive(Clone, Debug)]
pub struct Step {
    pub hours: u8,
    pub action: Action,
}

/// What happens. A `u16` picks a post, modulo how many there are.
#[derive(Clone, Debug)]
pub enum Action {
    /// Nothing but stamps.
    Quiet,
    Post(u8),
    /// More new posts than the window shows.
    Burst,
    Edit(u16),
    /// Every post gets another text: a new template.
    EditAll,
    Delete(u16),
    /// The same, and so many new ones come.
    DeleteAndPost(u16, u8),
    /// The post that was taken away last is there again.
    Restore,
    /// A post is missing from one or two documents by accident.
    Lose(u16, bool),
    Rename(Rename),
    Glitch(Glitch),
    /// An old post that is in the document no more is dated anew and stands at its top.
    Reemit(u16),
    /// The window shows so many more, and falls back with the next document.
    Swell(u8),
    /// The document lists one of its posts twice.
    Twice(u16),
}

/// One post or all get other ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rename {
    Https,
    Host,
    /// One post gets another title, and an address made of it where addresses are.
    Retitle(u16),
    /// One post gets another date, and an address made of it where addresses are.
    Redate(u16),
    /// From now on every guid bears a session parameter, another one in every document.
    Session,
    /// Another program makes other opaque ids for all; the links stay.
    Generator,
}

/// A document that is not what the publisher means; it heals with the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Glitch {
    Empty,
    NoBytes,
    Html,
    Cut(u8),
    IllFormed(u16),
    /// Well-formed, with less than half of the entries; whether the top or one here and there.
    Shrunken(bool),
}

fn window() -> impl Strategy<Value = Window> {
    prop_oneof![
        6 => (4_u8..16).prop_map(Window::Count),
        2 => (3_u8..15).prop_map(Window::Span),
        2 => (3_u8..15, 3_u8..10).prop_map(|(days, least)| Window::SpanAtLeast(days, least)),
        1 => Just(Window::Monthly),
        1 => (3_u8..8).prop_map(Window::Issue),
        1 => Just(Window::Complete),
        2 => Just(Window::Growing),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        12 => Just(Order::NewestFirst),
        2 => Just(Order::OldestFirst),
        2 => Just(Order::ByUpdate),
        2 => Just(Order::Ranked),
        1 => Just(Order::Unsorted),
        2 => (2_u8..5).prop_map(Order::Merged),
        1 => (2_u8..5).prop_map(Order::Blocks),
    ]
}

fn site() -> impl Strategy<Value = Site> {
    let ids = prop_oneof![3 => Just(Ids::Opaque), 5 => Just(Ids::Address), 1 => Just(Ids::None)];
    let path = prop_oneof![Just(PathStyle::Number), Just(PathStyle::Title), Just(PathStyle::Date)];
    let dates = prop_oneof![
        10 => Just(Dates::True),
        2 => Just(Dates::Day),
        1 => Just(Dates::Build),
        1 => Just(Dates::Ancient),
        1 => Just(Dates::None),
    ];
    let pinned =
        prop_oneof![8 => Just(Pinned::No), 1 => Just(Pinned::Top), 1 => Just(Pinned::Bottom)];
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.1),
        any::<bool>(),
        prop::bool::weighted(0.3),
    );
    let minutes = prop_oneof![4 => Just(60_u16), 1 => Just(15), 1 => Just(180), 1 => Just(360)];
    (window(), order(), ids, path, dates, pinned, flags, minutes).prop_map(
        |(mut window, order, ids, path, dates, mut pinned, flags, poll_minutes)| {
            let (atom, unlinked, mut untitled, mut backfills, noisy) = flags;
            // What goes together: a front page and a source have a size; an entry has an identity.
            let is_sized = matches!(order, Order::Ranked | Order::Merged(_) | Order::Blocks(_));
            if is_sized && !matches!(window, Window::Count(_)) {
                window = Window::Count(6);
            }
            // A post at a fixed place while the others expire one by one, with none in their place,
            // looks exactly as if each were taken away.
            if is_sized || !matches!(window, Window::Count(_)) {
                pinned = Pinned::No;
            }
            backfills |= is_sized || pinned != Pinned::No;
            untitled &= ids != Ids::None || !unlinked;
            Site {
                atom,
                window,
                order,
                ids,
                path,
                unlinked,
                dates,
                untitled,
                backfills,
                pinned,
                noisy,
                poll_minutes,
            }
        },
    )
}

fn rename() -> impl Strategy<Value = Rename> {
    prop_oneof![
        2 => Just(Rename::Https),
        2 => Just(Rename::Host),
        2 => any::<u16>().prop_map(Rename::Retitle),
        2 => any::<u16>().prop_map(Rename::Redate),
        1 => Just(Rename::Session),
        1 => Just(Rename::Generator),
    ]
}

fn glitch() -> impl Strategy<Value = Glitch> {
    prop_oneof![
        Just(Glitch::Empty),
        Just(Glitch::NoBytes),
        Just(Glitch::Html),
        any::<u8>().prop_map(Glitch::Cut),
        any::<u16>().prop_map(Glitch::IllFormed),
        any::<bool>().prop_map(Glitch::Shrunken),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Quiet),
        8 => (1_u8..4).prop_map(Action::Post),
        1 => Just(Action::Burst),
        3 => any::<u16>().prop_map(Action::Edit),
        1 => Just(Action::EditAll),
        6 => any::<u16>().prop_map(Action::Delete),
        2 => (any::<u16>(), 1_u8..3).prop_map(|(at, new)| Action::DeleteAndPost(at, new)),
        1 => Just(Action::Restore),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(at, twice)| Action::Lose(at, twice)),
        4 => rename().prop_map(Action::Rename),
        3 => glitch().prop_map(Action::Glitch),
        1 => any::<u16>().prop_map(Action::Reemit),
        1 => (1_u8..8).prop_map(Action::Swell),
        1 => any::<u16>().prop_map(Action::Twice),
    ]
}

pub fn plan() -> impl Strategy<Value = Plan> {
    let hours = prop_oneof![4 => 1_u8..12, 3 => 12_u8..48, 3 => 72_u8..110];
    let step = (hours, action()).prop_map(|(hours, action)| Step { hours, action });
    (site(), 2_u8..20, prop::collection::vec(step, 1..16)).prop_map(|(site, posts, steps)| Plan {
        site,
        posts,
        steps,
    })
}
