const numbers = [3, 1, 4, 1, 5, 9, 2, 6];
const ids = await Promise.all(["arithmetic mean", "median of numbers", "standard deviation"].map(async q => (await openclaw.tools.search(q, {limit: 1}))[0].id));
const [mean, median, deviation] = await Promise.all(ids.map(id => openclaw.tools.call(id, {numbers})));
return {mean: mean.result.details, median: median.result.details, deviation: deviation.result.details};
