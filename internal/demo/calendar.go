package demo

import (
	"fmt"
	"time"
)

func calendarTools() map[string]handler {
	event := func(title, start, end, calendar, location string, attendees []string) object {
		invited := make([]string, 0, len(attendees))
		return object{"title": title, "start": start, "end": end, "calendar": calendar, "location": location, "description": "", "attendees": append(invited, attendees...), "response": "accepted"}
	}
	events := newStore("event", []string{"title", "location", "description", "attendees"},
		event("Stand-up", "2026-06-01T09:00:00Z", "2026-06-01T09:15:00Z", "work", "room 2", []string{"ana@example.com", "bo@example.org"}),
		event("Dentist", "2026-06-02T14:00:00Z", "2026-06-02T14:45:00Z", "private", "12 Mill Lane", nil),
		event("Release review", "2026-06-03T10:00:00Z", "2026-06-03T11:30:00Z", "work", "room 1", []string{"ana@example.com"}),
	)
	return map[string]handler{
		"create_event": func(a arguments) (any, error) {
			if _, _, err := span(a.text("start"), a.text("end")); err != nil {
				return nil, err
			}
			r := event(a.text("title"), a.text("start"), a.text("end"), a.or("calendar", "work"), a.text("location"), a.texts("attendees"))
			r["description"] = a.text("description")
			return events.add(r), nil
		},
		"get_event": events.getTool,
		"update_event": func(a arguments) (any, error) {
			return events.change(a.text("id"), func(r object) error {
				if _, _, err := span(a.or("start", r["start"].(string)), a.or("end", r["end"].(string))); err != nil {
					return err
				}
				for _, f := range []string{"title", "start", "end", "location", "description"} {
					if a.has(f) {
						r[f] = a.text(f)
					}
				}
				return nil
			})
		},
		"delete_event": events.deleteTool,
		"list_events": func(a arguments) (any, error) {
			from, to, err := span(a.or("from", "0001-01-01T00:00:00Z"), a.or("to", "9999-12-31T00:00:00Z"))
			if err != nil {
				return nil, err
			}
			return sortBy(events.list(func(r object) bool {
				start, end, err := span(r["start"].(string), r["end"].(string))
				return err == nil && end.After(from) && start.Before(to) && (a.text("calendar") == "" || r["calendar"] == a.text("calendar"))
			}), "start"), nil
		},
		"search_events": events.searchTool,
		"find_free_slot": func(a arguments) (any, error) {
			from, to, err := span(a.text("from"), a.text("to"))
			if err != nil {
				return nil, err
			}
			return freeSlot(events.list(func(object) bool { return true }), from, to, time.Duration(a.count("minutes", 30))*time.Minute)
		},
		"invite_attendee":       events.addItemsTool("attendees"),
		"uninvite_attendee":     events.removeItemsTool("attendees"),
		"respond_to_invitation": events.updateTool("response"),
		"set_event_reminder":    events.setTool("reminder_minutes", "minutes_before", 0),
		"list_calendars":        events.tallyTool("calendar"),
		"days_between": func(a arguments) (any, error) {
			from, err := date(a.text("from"))
			if err != nil {
				return nil, err
			}
			to, err := date(a.text("to"))
			if err != nil {
				return nil, err
			}
			return object{"days": int(to.Sub(from) / (24 * time.Hour))}, nil
		},
		"add_days": func(a arguments) (any, error) {
			d, err := date(a.text("date"))
			if err != nil {
				return nil, err
			}
			return object{"date": d.AddDate(0, 0, a.count("days", 0)).Format(time.DateOnly)}, nil
		},
		"day_of_week": func(a arguments) (any, error) {
			d, err := date(a.text("date"))
			if err != nil {
				return nil, err
			}
			_, week := d.ISOWeek()
			return object{"day": d.Weekday().String(), "iso_week": week}, nil
		},
	}
}

// freeSlot moves a candidate past every event it meets until none is met.
func freeSlot(events []object, from, to time.Time, length time.Duration) (any, error) {
	slot := from
	for moved := true; moved; {
		moved = false
		for _, e := range events {
			start, end, err := span(e["start"].(string), e["end"].(string))
			if err == nil && start.Before(slot.Add(length)) && end.After(slot) {
				slot, moved = end, true
			}
		}
	}
	if slot.Add(length).After(to) {
		return nil, fmt.Errorf("no gap of %v between %s and %s", length, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return object{"start": slot.Format(time.RFC3339), "end": slot.Add(length).Format(time.RFC3339)}, nil
}

func span(start, end string) (from, to time.Time, err error) {
	if from, err = time.Parse(time.RFC3339, start); err != nil {
		return from, to, fmt.Errorf("%q is no RFC 3339 time such as 2026-06-03T09:30:00Z", start)
	}
	if to, err = time.Parse(time.RFC3339, end); err != nil {
		return from, to, fmt.Errorf("%q is no RFC 3339 time such as 2026-06-03T09:30:00Z", end)
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("the end %s is not after the start %s", end, start)
	}
	return from, to, nil
}

func date(s string) (time.Time, error) {
	d, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return d, fmt.Errorf("%q is no date such as 2026-06-03", s)
	}
	return d, nil
}
