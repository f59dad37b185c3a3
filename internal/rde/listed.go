// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"encoding/json"
	"slices"
	"strings"
)

// Listed returns the load balancer objects and the addresses in the section of the cloud controller manager. It ignores
// resources of other types, and entities without such a section: they belong to other writers.
func Listed(entityType string, content json.RawMessage) ([]Resource, []string) {
	var entity struct {
		Status struct {
			CPI struct {
				Resources []json.RawMessage `json:"vcdResourceSet"`
				Addresses []json.RawMessage `json:"virtualIPs"`
			} `json:"cpi"`
		} `json:"status"`
	}
	if !strings.HasPrefix(entityType, "urn:vcloud:type:vmware:capvcdCluster:") ||
		json.Unmarshal(content, &entity) != nil {
		return nil, nil
	}
	var resources []Resource
	for _, element := range entity.Status.CPI.Resources {
		var r wireResource
		if json.Unmarshal(element, &r) == nil &&
			slices.Contains([]string{VirtualService, Pool, NATRule, ApplicationPortProfile}, r.Type) {
			resources = append(resources, Resource{Type: r.Type, ID: r.ID, Name: r.Name})
		}
	}
	var addresses []string
	for _, element := range entity.Status.CPI.Addresses {
		var a string
		if json.Unmarshal(element, &a) == nil {
			addresses = append(addresses, a)
		}
	}
	return resources, addresses
}
