package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// number returns an argument as an exact rational number.
func (a arguments) number(name string) (*big.Rat, error) { return rational(name, a[name]) }

func rational(name string, v any) (*big.Rat, error) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, fmt.Errorf("%s must be a number", name)
	}
	if f, err := n.Float64(); err != nil || math.Abs(f) > 1e300 || f != 0 && math.Abs(f) < 1e-300 {
		return nil, fmt.Errorf("%s is out of range", name)
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil, fmt.Errorf("%s must be a number", name)
	}
	return r, nil
}

func (a arguments) integer(name string) (*big.Int, error) {
	r, err := a.number(name)
	if err != nil {
		return nil, err
	}
	if !r.IsInt() {
		return nil, fmt.Errorf("%s must be an integer", name)
	}
	return r.Num(), nil
}

func (a arguments) numbers(name string) ([]*big.Rat, error) {
	items, _ := a[name].([]any)
	out := make([]*big.Rat, len(items))
	for i, item := range items {
		r, err := rational(fmt.Sprintf("%s[%d]", name, i), item)
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s must hold at least one number", name)
	}
	return out, nil
}

func (a arguments) integers(name string) ([]*big.Int, error) {
	all, err := a.numbers(name)
	if err != nil {
		return nil, err
	}
	out := make([]*big.Int, len(all))
	for i, r := range all {
		if !r.IsInt() {
			return nil, fmt.Errorf("%s[%d] must be an integer", name, i)
		}
		out[i] = r.Num()
	}
	return out, nil
}

// decimal writes a number with up to so many digits after the point.
func decimal(r *big.Rat, digits int) json.Number {
	s := r.FloatString(digits)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		s = "0"
	}
	return json.Number(s)
}

func result(r *big.Rat) any { return object{"result": decimal(r, 15)} }

func whole(i *big.Int) any { return object{"result": json.Number(i.String())} }

func mathTools() map[string]handler {
	fold := func(f func(z, x, y *big.Rat) *big.Rat) handler {
		return func(a arguments) (any, error) {
			all, err := a.numbers("numbers")
			if err != nil {
				return nil, err
			}
			z := all[0]
			for _, x := range all[1:] {
				z = f(new(big.Rat), z, x)
			}
			return result(z), nil
		}
	}
	foldInt := func(f func(x, y *big.Int) *big.Int) handler {
		return func(a arguments) (any, error) {
			all, err := a.integers("numbers")
			if err != nil {
				return nil, err
			}
			z := new(big.Int).Abs(all[0])
			for _, x := range all[1:] {
				z = f(z, new(big.Int).Abs(x))
			}
			return whole(z), nil
		}
	}
	return map[string]handler{
		"add":                     fold((*big.Rat).Add),
		"multiply":                fold((*big.Rat).Mul),
		"greatest_common_divisor": foldInt(func(x, y *big.Int) *big.Int { return new(big.Int).GCD(nil, nil, x, y) }),
		"least_common_multiple": foldInt(func(x, y *big.Int) *big.Int {
			if x.Sign() == 0 || y.Sign() == 0 {
				return new(big.Int)
			}
			z := new(big.Int).Div(x, new(big.Int).GCD(nil, nil, x, y))
			return z.Mul(z, y)
		}),
		"subtract": func(a arguments) (any, error) {
			x, y, err := pair(a, "a", "b")
			if err != nil {
				return nil, err
			}
			return result(x.Sub(x, y)), nil
		},
		"divide": func(a arguments) (any, error) {
			x, y, err := pair(a, "a", "b")
			if err != nil {
				return nil, err
			}
			if y.Sign() == 0 {
				return nil, errors.New("division by zero")
			}
			x.Quo(x, y)
			return object{"result": decimal(x, a.count("digits", 10)), "fraction": x.RatString()}, nil
		},
		"integer_divide": func(a arguments) (any, error) {
			x, err := a.integer("a")
			if err != nil {
				return nil, err
			}
			y, err := a.integer("b")
			if err != nil {
				return nil, err
			}
			if y.Sign() == 0 {
				return nil, errors.New("division by zero")
			}
			q, m := new(big.Int).DivMod(x, y, new(big.Int))
			return object{"quotient": json.Number(q.String()), "remainder": json.Number(m.String())}, nil
		},
		"power": func(a arguments) (any, error) {
			base, err := a.integer("base")
			if err != nil {
				return nil, err
			}
			exponent := a.count("exponent", -1)
			if exponent < 0 || exponent*base.BitLen() > 1_000_000 {
				return nil, errors.New("the exponent is negative, or the power has over 300,000 digits")
			}
			return whole(new(big.Int).Exp(base, big.NewInt(int64(exponent)), nil)), nil
		},
		"square_root": func(a arguments) (any, error) {
			x, err := a.number("x")
			if err != nil {
				return nil, err
			}
			if x.Sign() < 0 {
				return nil, errors.New("x is negative")
			}
			digits := a.count("digits", 15)
			f := new(big.Float).SetPrec(2048).SetRat(x)
			r, _ := f.Sqrt(f).Rat(nil)
			return object{"result": decimal(r, digits)}, nil
		},
		"factorial": func(a arguments) (any, error) {
			n := a.count("n", -1)
			if n < 0 || n > 5000 {
				return nil, errors.New("n must be between 0 and 5000")
			}
			return whole(new(big.Int).MulRange(1, int64(n))), nil
		},
		"is_prime": func(a arguments) (any, error) {
			n, err := a.integer("n")
			if err != nil {
				return nil, err
			}
			return object{"prime": n.Sign() > 0 && n.ProbablyPrime(32)}, nil
		},
		"prime_factors": func(a arguments) (any, error) {
			n := a.count("n", 0)
			if n < 1 || n > 1e15 {
				return nil, errors.New("n must be between 1 and 10^15")
			}
			factors := []int{}
			for p := 2; p*p <= n; p++ {
				for ; n%p == 0; n /= p {
					factors = append(factors, p)
				}
			}
			if n > 1 {
				factors = append(factors, n)
			}
			return object{"factors": factors}, nil
		},
		"mean": func(a arguments) (any, error) {
			all, err := a.numbers("numbers")
			if err != nil {
				return nil, err
			}
			return result(mean(all)), nil
		},
		"median": func(a arguments) (any, error) {
			all, err := a.numbers("numbers")
			if err != nil {
				return nil, err
			}
			slices.SortFunc(all, (*big.Rat).Cmp)
			mid := all[(len(all)-1)/2 : len(all)/2+1]
			return result(mean(mid)), nil
		},
		"standard_deviation": func(a arguments) (any, error) {
			all, err := a.numbers("numbers")
			if err != nil {
				return nil, err
			}
			n := len(all)
			if !a.flag("population", false) {
				n--
			}
			if n == 0 {
				return nil, errors.New("the deviation of a sample needs at least two numbers")
			}
			m, sum := mean(all), new(big.Rat)
			for _, x := range all {
				d := new(big.Rat).Sub(x, m)
				sum.Add(sum, d.Mul(d, d))
			}
			v, _ := sum.Quo(sum, big.NewRat(int64(n), 1)).Float64()
			return object{"result": math.Sqrt(v)}, nil
		},
		"percent_change": func(a arguments) (any, error) {
			from, to, err := pair(a, "from", "to")
			if err != nil {
				return nil, err
			}
			if from.Sign() == 0 {
				return nil, errors.New("a change from zero has no percentage")
			}
			to.Sub(to, from).Quo(to, from)
			return object{"percent": decimal(to.Mul(to, big.NewRat(100, 1)), 6)}, nil
		},
		"convert_base": func(a arguments) (any, error) {
			from, to := a.count("from", 10), a.count("to", 10)
			n, ok := new(big.Int).SetString(a.text("digits"), min(max(from, 2), 36))
			if !ok || to < 2 || to > 36 {
				return nil, fmt.Errorf("%q is no integer in base %d, or base %d is not between 2 and 36", a.text("digits"), from, to)
			}
			return object{"digits": n.Text(to)}, nil
		},
	}
}

func pair(a arguments, first, second string) (x, y *big.Rat, err error) {
	if x, err = a.number(first); err != nil {
		return nil, nil, err
	}
	y, err = a.number(second)
	return x, y, err
}

func mean(all []*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, x := range all {
		sum.Add(sum, x)
	}
	return sum.Quo(sum, big.NewRat(int64(len(all)), 1))
}
