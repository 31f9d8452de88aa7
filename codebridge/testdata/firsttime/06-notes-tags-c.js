let notes = await openclaw.tools.call("mcp:notes:list_notes", "{}")
notes.result.details
