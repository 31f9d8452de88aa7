const hits = await openclaw.tools.search("current weather")
const cities: string[] = ["Oslo", "Lisbon"]
return cities.map(city => openclaw.tools.call(hits[0].id, { city }))
