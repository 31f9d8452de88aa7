package demo

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

type station struct {
	latitude, longitude, celsius float64
	sky                          string
	sunrise, sunset              string
	alert                        string
	airQuality                   int
}

var stations = map[string]station{
	"Lisbon":    {38.72, -9.14, 24, "clear", "06:11", "20:58", "", 34},
	"Oslo":      {59.91, 10.75, 16, "light rain", "04:00", "22:32", "", 18},
	"Nairobi":   {-1.29, 36.82, 21, "cloudy", "06:29", "18:32", "", 52},
	"Osaka":     {34.69, 135.5, 27, "humid", "04:45", "19:08", "heavy rain expected in the evening", 61},
	"Denver":    {39.74, -104.99, 19, "clear", "05:33", "20:23", "thunderstorm watch until midnight", 40},
	"Melbourne": {-37.81, 144.96, 12, "windy", "07:28", "17:09", "", 22},
}

func weatherTools() map[string]handler {
	at := func(f func(a arguments, s station) object) handler {
		return func(a arguments) (any, error) {
			for name, s := range stations {
				if strings.EqualFold(name, a.text("city")) {
					out := f(a, s)
					out["city"] = name
					return out, nil
				}
			}
			return nil, fmt.Errorf("no station in %q; there are %v", a.text("city"), slices.Sorted(maps.Keys(stations)))
		}
	}
	return map[string]handler{
		"current_weather": at(func(a arguments, s station) object {
			return object{"temperature": degrees(s.celsius, a), "sky": s.sky, "humidity_percent": 55, "wind_kmh": 14}
		}),
		"daily_forecast": at(func(a arguments, s station) object {
			days := []object{}
			for i := range min(max(a.count("days", 5), 1), 14) {
				mid := s.celsius + 2*math.Sin(float64(i))
				days = append(days, object{"day": i + 1, "low": degrees(mid-5, a), "high": degrees(mid+3, a), "rain_percent": (i*17 + 10) % 100})
			}
			return object{"days": days}
		}),
		"hourly_forecast": at(func(a arguments, s station) object {
			hours := []string{}
			for i := range min(max(a.count("hours", 12), 1), 48) {
				hours = append(hours, degrees(s.celsius+4*math.Sin(float64(i)*math.Pi/12), a))
			}
			return object{"hours": hours}
		}),
		"weather_alerts": at(func(_ arguments, s station) object {
			alerts := []string{}
			if s.alert != "" {
				alerts = append(alerts, s.alert)
			}
			return object{"alerts": alerts}
		}),
		"air_quality": at(func(_ arguments, s station) object {
			return object{"index": s.airQuality, "pm25": float64(s.airQuality) / 4}
		}),
		"sunrise_and_sunset": at(func(_ arguments, s station) object {
			return object{"sunrise": s.sunrise, "sunset": s.sunset}
		}),
		"list_weather_stations": func(arguments) (any, error) {
			out := object{}
			for name, s := range stations {
				out[name] = object{"latitude": s.latitude, "longitude": s.longitude}
			}
			return out, nil
		},
	}
}

func degrees(celsius float64, a arguments) string {
	if a.text("units") == "imperial" {
		return fmt.Sprintf("%.0f °F", celsius*9/5+32)
	}
	return fmt.Sprintf("%.0f °C", celsius)
}
