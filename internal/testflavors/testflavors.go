// SPDX-License-Identifier: Apache-2.0

// Package testflavors provides values for the variables of the flavors in tests. They match the models of the
// simulator.
package testflavors

import "maps"

// Needed returns the variables that users must set because they have no default.
func Needed() map[string]string { return maps.Clone(needed) }

// Rendered returns the variables that are required to render a flavor without clusterctl: the needed ones, and those
// that clusterctl sets.
func Rendered() map[string]string {
	all := Needed()
	maps.Copy(all, clusterctls)
	return all
}

// Optional returns variables that have a default, with different values. Without names it returns all of them. It
// panics if no flavor has a variable with one of the names.
func Optional(names ...string) map[string]string {
	if len(names) == 0 {
		return maps.Clone(optional)
	}
	chosen := map[string]string{}
	for _, name := range names {
		value, ok := optional[name]
		if !ok {
			panic("no flavour has the optional variable " + name)
		}
		chosen[name] = value
	}
	return chosen
}

var clusterctls = map[string]string{
	"CLUSTER_NAME":                "demo",
	"KUBERNETES_VERSION":          "v1.36.3",
	"CONTROL_PLANE_MACHINE_COUNT": "3",
	"WORKER_MACHINE_COUNT":        "2",
}

//nolint:gosec // credentials of the simulator
var needed = map[string]string{
	"VCD_SITE":                     "https://vcd.example.com",
	"VCD_ORGANIZATION":             "acme",
	"VCD_ORGANIZATION_VDC":         "acme-vdc",
	"VCD_ORGANIZATION_VDC_NETWORK": "nodes",
	"VCD_CATALOG":                  "kubernetes",
	"VCD_TEMPLATE_NAME":            "ubuntu-2404-kube-v1.36.3",
	"CONTROL_PLANE_ENDPOINT_IP":    "192.168.100.200",
	"VCD_ZONE_A_VDC":               "acme-vdc",
	"VCD_ZONE_B_VDC":               "acme-vdc-b",
	"VCD_ZONE_C_VDC":               "acme-vdc-c",
	"HTTP_PROXY_URL":               "http://proxy.example.com:3128",
	"BGP_AS":                       "65001",
	"BGP_INTERFACE":                "ens192",
	"BGP_PEER_ADDRESS":             "192.168.100.1",
	"BGP_PEER_AS":                  "65000",
	"CONTROL_PLANE_ENDPOINT_IPV6":  "fd00:100::f:1",
	"NODE_POOL":                    "nodes",
	"NODE_POOL_IPV6":               "nodes-v6",
	"CONTROL_PLANE_ENDPOINT_POOL":  "virtual-ips",
	"VCD_CCM_USERNAME_B64":         "Y2Nt",
	"VCD_CCM_PASSWORD_B64":         "c2VjcmV0",
}

//nolint:gosec // credentials of the simulator
var optional = map[string]string{
	"VCD_REGION":                         "eu",
	"POD_CIDR":                           "10.244.0.0/16",
	"SERVICE_CIDR":                       "10.96.0.0/12",
	"VIP_NETWORK_INTERFACE":              "ens192",
	"HTTPS_PROXY_URL":                    "https://proxy.example.com:3129",
	"VCD_TEMPLATE_PATTERN":               "debian-12-kube-VERSION",
	"CNI":                                "cilium",
	"PROXY_EXCEPTIONS":                   ".corp.example.com, 10.0.0.0/8",
	"BGP_PEER_MULTIHOP":                  "true",
	"BGP_PEER_PASSWORD_B64":              "czNjcmV0",
	"POD_CIDR_IPV6":                      "fd6a:100:a::/48",
	"SERVICE_CIDR_IPV6":                  "fd00:96::/112",
	"NODE_POOL_API_GROUP":                "ipam.example.com",
	"NODE_POOL_KIND":                     "ExamplePool",
	"KUBE_VIP_IMAGE":                     "registry.example.com/kube-vip:v0.9.1",
	"VCD_USERNAME_B64":                   "Y2FwdmNk",
	"VCD_PASSWORD_B64":                   "cGFzc3dvcmQ=",
	"VCD_API_TOKEN_B64":                  "dG9rZW4=",
	"VCD_REFRESH_TOKEN_B64":              "dG9rZW4=",
	"VCD_CA_BUNDLE_B64":                  "LS0tLS1CRUdJTg==",
	"VCD_CCM_API_TOKEN_B64":              "Y2NtLXRva2Vu",
	"VCD_CCM_CREDENTIALS_SECRET":         "demo-credentials",
	"VCD_CONTROL_PLANE_SIZING_POLICY":    "large",
	"VCD_CONTROL_PLANE_PLACEMENT_POLICY": "rack-a",
	"VCD_CONTROL_PLANE_STORAGE_PROFILE":  "fast",
	"VCD_WORKER_SIZING_POLICY":           "small",
	"VCD_WORKER_PLACEMENT_POLICY":        "rack-a",
	"VCD_WORKER_STORAGE_PROFILE":         "standard",
	"CONTROL_PLANE_ENDPOINT_PORT":        "443",
	"DISK_SIZE":                          "40Gi",
	"SSH_PUBLIC_KEY":                     "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+x/y= me@example.com",
}
