const [hit] = await openclaw.tools.search("current weather of a city", {limit: 1});
const cities = ["Oslo", "Lisbon"];
const all = await Promise.all(cities.map(city => openclaw.tools.call(hit.id, {city})));
return all.map((r, i) => ({city: cities[i], weather: r.result.details}));
