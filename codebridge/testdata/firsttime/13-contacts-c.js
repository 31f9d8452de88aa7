let contact = await openclaw.tools.contacts.create_contact({ name: "Ida Example" })
let vcard = await openclaw.tools.contacts.export_vcard({ id: contact.id })
vcard.result.details
