const hits = await openclaw.tools.search("create calendar event")
const schema = await openclaw.tools.describe(hits[0])
schema.parameters.properties
