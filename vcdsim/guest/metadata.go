// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"errors"
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

// metadata is guestinfo.metadata as cloud-init sees it: a mapping, with its network part kept separately.
type metadata struct {
	values  map[string]any
	network map[string]any
}

func readMetadata(info guestinfo) (metadata, error) {
	text, err := info.decode("metadata")
	if err != nil {
		return metadata{}, err
	}
	if text == "" {
		return metadata{}, info.hasData()
	}
	values, err := parseMapping(text)
	if err != nil {
		return metadata{}, fmt.Errorf("guestinfo.metadata: %w", err)
	}
	m := metadata{values: values}
	if m.network, err = takeNetwork(values); err != nil {
		return metadata{}, fmt.Errorf("guestinfo.metadata: network: %w", err)
	}
	return m, nil
}

// hasData returns an error if the guestinfo contains neither metadata nor user data. cloud-init ignores its VMware
// datasource in that case.
func (g guestinfo) hasData() error {
	for _, key := range []string{"userdata", "vendordata", ignitionKey} {
		if g.get(key) != "" {
			return nil
		}
	}
	return errors.New("guestinfo.metadata: missing or redacted, and so is user data: the guest finds no data at all")
}

// takeNetwork removes network and network.encoding from values and returns the network configuration. network may be
// a mapping or an encoded document.
func takeNetwork(values map[string]any) (map[string]any, error) {
	network := values["network"]
	encoding := values["network.encoding"]
	delete(values, "network")
	delete(values, "network.encoding")
	switch n := network.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return n, nil
	case string:
		text, err := decodeAs(scalar(encoding), n)
		if err != nil {
			return nil, err
		}
		return parseMapping(text)
	default:
		return nil, errors.New("neither a mapping nor an encoded string")
	}
}

// parseMapping parses a YAML or JSON document with a mapping at the top level.
func parseMapping(text string) (map[string]any, error) {
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	values, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("not a YAML mapping")
	}
	return values, nil
}

// text returns the value of a scalar key as a string, or "" if it is absent.
func (m metadata) text(key string) string { return scalar(m.values[key]) }

// redact returns the keys to clear; cleanup-guestinfo is the older name of the setting.
func (m metadata) redact() []string {
	keys := m.values["redact"]
	if keys == nil {
		keys = m.values["cleanup-guestinfo"]
	}
	return texts(keys)
}

// checkWait returns an error if the metadata lets cloud-init wait for an address that it never gets.
func (m metadata) checkWait(id Identity) error {
	wait, _ := m.values["wait-on-network"].(map[string]any)
	if wait == nil {
		return nil
	}
	has4 := false
	has6 := false
	for _, prefixes := range id.Addresses {
		for _, p := range prefixes {
			has4 = has4 || p.Addr().Is4()
			has6 = has6 || p.Addr().Is6()
		}
	}
	if isTrue(wait["ipv4"]) && !has4 {
		return errors.New("guestinfo.metadata: wait-on-network.ipv4 is true but no NIC gets an IPv4 address, so the guest would wait forever")
	}
	if isTrue(wait["ipv6"]) && !has6 {
		return errors.New("guestinfo.metadata: wait-on-network.ipv6 is true but no NIC gets an IPv6 address, so the guest would wait forever")
	}
	return nil
}

// scalar returns a YAML scalar as text, and "" for anything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}

// texts returns a scalar or a list of scalars as strings.
func texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		if s := scalar(v); s != "" {
			return []string{s}
		}
		return nil
	}
	var out []string
	for _, item := range list {
		if s := scalar(item); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// isTrue parses a boolean as cloud-init does, which also accepts words such as "yes".
func isTrue(v any) bool {
	switch scalar(v) {
	case "true", "True", "TRUE", "1", "on", "yes":
		return true
	default:
		return false
	}
}
