package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

type setter = func(*Config, *yaml.Node) error

// scalar returns the text of a single value.
func scalar(n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", errors.New("must be a single value")
	}
	if n.Tag == "!!null" {
		return "", nil
	}
	return n.Value, nil
}

// parsed sets what parse makes of a single value. Nothing leaves the fallback.
func parsed[T any](of func(*Config) *T, parse func(string) (T, error)) setter {
	return func(c *Config, n *yaml.Node) error {
		s, err := scalar(n)
		if err != nil || s == "" {
			return err
		}
		value, err := parse(s)
		if err == nil {
			*of(c) = value
		}
		return err
	}
}

// list sets what parse makes of each element.
func list[T any](of func(*Config) *[]T, parse func(string) (T, error)) setter {
	return func(c *Config, n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			return nil
		}
		if n.Kind != yaml.SequenceNode {
			return errors.New("must be a list")
		}
		var problems []error
		for i, element := range n.Content {
			s, err := scalar(element)
			if err == nil {
				var value T
				value, err = parse(s)
				*of(c) = append(*of(c), value)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("element %d %w", i+1, err))
			}
		}
		return errors.Join(problems...)
	}
}

func asText(s string) (string, error) { return strings.TrimSpace(s), nil }

func text(of func(*Config) *string) setter { return parsed(of, asText) }

func texts(of func(*Config) *[]string) setter { return list(of, asText) }

// oneMore adds a single value to a list.
func oneMore(of func(*Config) *[]string) setter {
	return func(c *Config, n *yaml.Node) error {
		s, err := scalar(n)
		if err == nil && s != "" {
			*of(c) = append([]string{s}, *of(c)...)
		}
		return err
	}
}

func asBoolean(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("is %q, but must be true or false", s)
}

func boolean(of func(*Config) *bool) setter { return parsed(of, asBoolean) }

func not(of func(*Config) *bool) setter {
	return parsed(of, func(s string) (bool, error) {
		value, err := asBoolean(s)
		return !value, err
	})
}

// ignore takes any value of a key that does nothing.
func ignore(*Config, *yaml.Node) error { return nil }

func asInteger(s string) (int, error) {
	value, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("is %q, but must be a whole number", s)
	}
	return value, nil
}

func integer(of func(*Config) *int) setter { return parsed(of, asInteger) }

func integers(of func(*Config) *[]int) setter { return list(of, asInteger) }

func decimal(of func(*Config) *float64) setter {
	return parsed(of, func(s string) (float64, error) {
		value, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("is %q, but must be a number", s)
		}
		return value, nil
	})
}

func duration(of func(*Config) *time.Duration) setter {
	return parsed(of, func(s string) (time.Duration, error) {
		value, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("is %q, but must be a duration such as 30s", s)
		}
		return value, nil
	})
}

func address(of func(*Config) *netip.Addr) setter {
	return parsed(of, func(s string) (netip.Addr, error) {
		value, err := netip.ParseAddr(s)
		if err != nil || value.Zone() != "" {
			return netip.Addr{}, fmt.Errorf("is %q, but must be an address such as 192.168.8.2", s)
		}
		return value, nil
	})
}

func asPrefix(s string) (netip.Prefix, error) {
	value, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("is %q, but must be a CIDR such as 192.168.8.0/24", s)
	}
	return value.Masked(), nil
}

func prefix(of func(*Config) *netip.Prefix) setter { return parsed(of, asPrefix) }

func prefixes(of func(*Config) *[]netip.Prefix) setter { return list(of, asPrefix) }

func families(c *Config, n *yaml.Node) error {
	return list(func(c *Config) *[]Family { return &c.Nodes.Families }, func(s string) (Family, error) {
		switch f := Family(s); f {
		case IPv4, IPv6:
			return f, nil
		}
		return "", fmt.Errorf("is %q, but must be IPv4 or IPv6", s)
	})(c, n)
}
