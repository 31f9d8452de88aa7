package demo

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// units holds, by quantity, each unit's size in the first-named base unit, as
// exact decimals or fractions. Sources: the SI brochure and the international
// definitions of yard and pound of 1959.
var units = map[string]map[string]string{
	"length":    {"m": "1", "km": "1000", "cm": "0.01", "mm": "0.001", "mi": "1609.344", "yd": "0.9144", "ft": "0.3048", "in": "0.0254", "nmi": "1852"},
	"mass":      {"kg": "1", "g": "0.001", "mg": "0.000001", "t": "1000", "lb": "0.45359237", "oz": "0.028349523125", "st": "6.35029318"},
	"volume":    {"l": "1", "ml": "0.001", "m3": "1000", "gal": "3.785411784", "qt": "0.946352946", "pt": "0.473176473", "cup": "0.2365882365", "floz": "0.0295735295625"},
	"area":      {"m2": "1", "km2": "1000000", "ha": "10000", "ac": "4046.8564224", "ft2": "0.09290304", "mi2": "2589988.110336"},
	"speed":     {"m/s": "1", "km/h": "5/18", "mph": "0.44704", "kn": "463/900"},
	"duration":  {"s": "1", "ms": "0.001", "min": "60", "h": "3600", "d": "86400", "wk": "604800"},
	"data_size": {"B": "1", "kB": "1000", "MB": "1000000", "GB": "1000000000", "TB": "1000000000000", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824", "TiB": "1099511627776"},
	"energy":    {"J": "1", "kJ": "1000", "Wh": "3600", "kWh": "3600000", "cal": "4.184", "kcal": "4184"},
	"pressure":  {"Pa": "1", "hPa": "100", "kPa": "1000", "bar": "100000", "psi": "6894.757293168", "atm": "101325"},
}

// rates are units of money in euros, made up for this sample.
var rates = map[string]string{"EUR": "1", "USD": "0.9", "GBP": "1.2", "JPY": "0.006", "CHF": "1.05"}

func unitTools() map[string]handler {
	tools := map[string]handler{
		"convert_currency": func(a arguments) (any, error) { return convert(a, "amount", rates, 2) },
		"convert_temperature": func(a arguments) (any, error) {
			v, err := a.number("value")
			if err != nil {
				return nil, err
			}
			return temperature(v, a.text("from"), a.text("to"))
		},
		"list_units": func(a arguments) (any, error) {
			out := object{}
			for quantity, sizes := range units {
				if a.text("quantity") == "" || a.text("quantity") == quantity {
					out[quantity] = slices.Sorted(maps.Keys(sizes))
				}
			}
			return out, nil
		},
	}
	for quantity, sizes := range units {
		tools["convert_"+quantity] = func(a arguments) (any, error) { return convert(a, "value", sizes, 12) }
	}
	return tools
}

func convert(a arguments, name string, sizes map[string]string, digits int) (any, error) {
	v, err := a.number(name)
	if err != nil {
		return nil, err
	}
	for _, unit := range []string{a.text("from"), a.text("to")} {
		if sizes[unit] == "" {
			return nil, fmt.Errorf("%q is not one of the units %v", unit, slices.Sorted(maps.Keys(sizes)))
		}
	}
	from, _ := new(big.Rat).SetString(sizes[a.text("from")])
	to, _ := new(big.Rat).SetString(sizes[a.text("to")])
	v.Mul(v, from).Quo(v, to)
	return object{name: decimal(v, digits), "unit": a.text("to")}, nil
}

// temperature goes through Kelvin: K = (v + offset) * scale.
func temperature(v *big.Rat, from, to string) (any, error) {
	offset := map[string]*big.Rat{"K": new(big.Rat), "C": big.NewRat(27315, 100), "F": big.NewRat(45967, 100)}
	scale := map[string]*big.Rat{"K": big.NewRat(1, 1), "C": big.NewRat(1, 1), "F": big.NewRat(5, 9)}
	if offset[from] == nil || offset[to] == nil {
		return nil, fmt.Errorf("temperatures are in C, F or K, not %q and %q", from, to)
	}
	v.Add(v, offset[from]).Mul(v, scale[from])
	if v.Sign() < 0 {
		return nil, fmt.Errorf("that is below absolute zero")
	}
	v.Quo(v, scale[to]).Sub(v, offset[to])
	return object{"value": decimal(v, 6), "unit": to}, nil
}
