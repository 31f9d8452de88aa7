package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func noteTools() map[string]handler {
	notes := newStore("note", []string{"title", "body", "tags"},
		object{"title": "Groceries", "body": "- oat milk\n- coffee\n- lemons", "folder": "home", "tags": []string{"list"}, "pinned": false, "archived": false, "history": []object{}},
		object{"title": "Release checklist", "body": "1. changelog\n2. tag\n3. announce", "folder": "work", "tags": []string{"release", "list"}, "pinned": true, "archived": false, "history": []object{}},
		object{"title": "Book ideas", "body": "A history of unit conversion.", "folder": "home", "tags": []string{"ideas"}, "pinned": false, "archived": false, "history": []object{}},
	)
	short := func(records []object) []object { return without(records, "body", "history") }
	remember := func(r object) {
		r["history"] = append(slices.Clone(r["history"].([]object)), object{"title": r["title"], "body": r["body"]})
	}
	return map[string]handler{
		"create_note": func(a arguments) (any, error) {
			return notes.add(object{"title": a.text("title"), "body": a.text("body"), "folder": a.or("folder", "inbox"), "tags": union(nil, a.texts("tags")), "pinned": false, "archived": false, "history": []object{}}), nil
		},
		"get_note": notes.getTool,
		"update_note": func(a arguments) (any, error) {
			return notes.change(a.text("id"), func(r object) error {
				remember(r)
				for _, f := range []string{"title", "body"} {
					if a.has(f) {
						r[f] = a.text(f)
					}
				}
				return nil
			})
		},
		"append_to_note": func(a arguments) (any, error) {
			return notes.change(a.text("id"), func(r object) error {
				remember(r)
				r["body"] = strings.TrimLeft(fmt.Sprintf("%v\n%s", r["body"], a.text("text")), "\n")
				return nil
			})
		},
		"delete_note": notes.deleteTool,
		"list_notes": func(a arguments) (any, error) {
			found := notes.list(func(r object) bool {
				return (a.text("folder") == "" || r["folder"] == a.text("folder")) &&
					(a.text("tag") == "" || slices.Contains(r["tags"].([]string), a.text("tag"))) &&
					(r["archived"] == false || a.flag("include_archived", false))
			})
			return first(short(newestFirst(found)), a.count("limit", 50)), nil
		},
		"search_notes": func(a arguments) (any, error) {
			return short(notes.search(a.text("query"), a.count("limit", 10))), nil
		},
		"tag_note":          notes.addItemsTool("tags"),
		"untag_note":        notes.removeItemsTool("tags"),
		"list_note_tags":    notes.tallyTool("tags"),
		"pin_note":          notes.setTool("pinned", "pinned", true),
		"archive_note":      notes.setTool("archived", "archived", true),
		"move_note":         notes.updateTool("folder"),
		"list_note_folders": notes.tallyTool("folder"),
		"note_history": func(a arguments) (any, error) {
			r, err := notes.get(a.text("id"))
			return r["history"], err
		},
	}
}

func contactTools() map[string]handler {
	contacts := newStore("contact", []string{"name", "company", "emails", "phones", "note"},
		object{"name": "Ana Ferreira", "company": "Tejo Logistics", "emails": []string{"ana@example.com"}, "phones": []string{"+351 555 0101"}, "groups": []string{"suppliers"}, "note": ""},
		object{"name": "Bo Lindqvist", "company": "Nordlys", "emails": []string{"bo@example.org"}, "phones": []string{}, "groups": []string{"customers"}, "note": "prefers mail"},
		object{"name": "Chidi Okafor", "company": "", "emails": []string{"chidi@example.net"}, "phones": []string{"+234 555 0103"}, "groups": []string{}, "note": ""},
	)
	lists := []string{"emails", "phones", "groups"}
	return map[string]handler{
		"create_contact": func(a arguments) (any, error) {
			return contacts.add(object{"name": a.text("name"), "company": a.text("company"), "note": a.text("note"), "emails": union(nil, a.texts("emails")), "phones": union(nil, a.texts("phones")), "groups": []string{}}), nil
		},
		"get_contact":    contacts.getTool,
		"update_contact": contacts.updateTool("name", "company", "note"),
		"delete_contact": contacts.deleteTool,
		"list_contacts": func(a arguments) (any, error) {
			found := contacts.list(func(r object) bool {
				return a.text("group") == "" || slices.Contains(r["groups"].([]string), a.text("group"))
			})
			return first(sortBy(found, "name"), a.count("limit", 50)), nil
		},
		"search_contacts":           contacts.searchTool,
		"add_contact_email":         contacts.addItemsTool("emails"),
		"remove_contact_email":      contacts.removeItemsTool("emails"),
		"add_contact_phone":         contacts.addItemsTool("phones"),
		"add_contact_to_group":      contacts.addItemsTool("groups"),
		"remove_contact_from_group": contacts.removeItemsTool("groups"),
		"list_contact_groups":       contacts.tallyTool("groups"),
		"merge_contacts": func(a arguments) (any, error) {
			from, err := contacts.get(a.text("id"))
			if err != nil {
				return nil, err
			}
			if a.text("id") == a.text("into") {
				return nil, fmt.Errorf("a contact cannot be merged into itself")
			}
			merged, err := contacts.change(a.text("into"), func(r object) error {
				for _, f := range lists {
					r[f] = union(r[f].([]string), from[f].([]string))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			_, err = contacts.remove(a.text("id"))
			return merged, err
		},
		"export_vcard": func(a arguments) (any, error) {
			r, err := contacts.get(a.text("id"))
			if err != nil {
				return nil, err
			}
			lines := []string{"BEGIN:VCARD", "VERSION:4.0", fmt.Sprintf("FN:%v", r["name"])}
			if r["company"] != "" {
				lines = append(lines, fmt.Sprintf("ORG:%v", r["company"]))
			}
			for _, e := range r["emails"].([]string) {
				lines = append(lines, "EMAIL:"+e)
			}
			for _, p := range r["phones"].([]string) {
				lines = append(lines, "TEL:"+p)
			}
			return strings.Join(append(lines, "END:VCARD"), "\r\n"), nil
		},
	}
}

func ticketTools() map[string]handler {
	ticket := func(title, body, kind, priority, assignee string, labels []string) object {
		return object{"title": title, "body": body, "type": kind, "priority": priority, "assignee": assignee, "labels": labels, "status": "open", "comments": []string{}, "links": []string{}}
	}
	tickets := newStore("ticket", []string{"title", "body", "labels"},
		ticket("Login button does nothing on phones", "Tapping it has no effect in portrait mode.", "bug", "high", "ana", []string{"mobile", "login"}),
		ticket("Export invoices as CSV", "Accounting wants a monthly file.", "task", "normal", "bo", []string{"billing"}),
		ticket("How are refunds booked?", "A customer asks.", "question", "low", "", []string{"billing"}),
	)
	short := func(records []object) []object { return without(records, "body", "comments", "links") }
	status := func(set object) handler {
		return func(a arguments) (any, error) {
			return tickets.change(a.text("id"), func(r object) error {
				maps.Copy(r, set)
				if r["status"] == "closed" {
					r["reason"] = a.or("reason", "done")
				} else {
					delete(r, "reason")
				}
				return nil
			})
		}
	}
	return map[string]handler{
		"create_ticket": func(a arguments) (any, error) {
			return tickets.add(ticket(a.text("title"), a.text("body"), a.or("type", "task"), a.or("priority", "normal"), a.text("assignee"), union(nil, a.texts("labels")))), nil
		},
		"get_ticket":        tickets.getTool,
		"update_ticket":     tickets.updateTool("title", "body"),
		"set_ticket_status": tickets.updateTool("status"),
		"close_ticket":      status(object{"status": "closed"}),
		"reopen_ticket":     status(object{"status": "open"}),
		"delete_ticket":     tickets.deleteTool,
		"list_tickets": func(a arguments) (any, error) {
			found := tickets.list(func(r object) bool {
				for _, f := range []string{"status", "assignee", "priority"} {
					if a.text(f) != "" && r[f] != a.text(f) {
						return false
					}
				}
				return a.text("label") == "" || slices.Contains(r["labels"].([]string), a.text("label"))
			})
			return first(short(newestFirst(found)), a.count("limit", 50)), nil
		},
		"search_tickets": func(a arguments) (any, error) {
			return short(tickets.search(a.text("query"), a.count("limit", 50))), nil
		},
		"assign_ticket":       tickets.updateTool("assignee"),
		"set_ticket_priority": tickets.updateTool("priority"),
		"comment_on_ticket": func(a arguments) (any, error) {
			return tickets.change(a.text("id"), func(r object) error {
				r["comments"] = append(slices.Clone(r["comments"].([]string)), a.text("comment"))
				return nil
			})
		},
		"label_ticket":   tickets.addItemsTool("labels"),
		"unlabel_ticket": tickets.removeItemsTool("labels"),
		"link_tickets": func(a arguments) (any, error) {
			if _, err := tickets.get(a.text("other")); err != nil {
				return nil, err
			}
			return tickets.change(a.text("id"), func(r object) error {
				r["links"] = union(r["links"].([]string), []string{a.text("other")})
				return nil
			})
		},
		"list_ticket_labels": tickets.tallyTool("labels"),
		"ticket_statistics": func(a arguments) (any, error) {
			return tickets.tally(a.or("by", "status")), nil
		},
	}
}
