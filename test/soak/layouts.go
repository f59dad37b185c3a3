// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A layout is a shape of clusters: a shipped template, the site that it needs, and changes.
type layout struct {
	name     string
	template string // templates/cluster-template<template>.yaml
	site     int
	image    string                                        // prefix of the names of VM templates
	values   map[string]string                             // additional variables
	pools    bool                                          // nodes have addresses of IPAM pools
	adapt    func(object *unstructured.Unstructured) error // changes an object of the template; nil: nothing
}

// Images of nodes, as prefixes of the names of VM templates.
const (
	ubuntu  = "ubuntu-2404-kube-"
	flatcar = "flatcar-kube-"
)

// layouts returns all layouts.
func layouts() []layout {
	zones := map[string]string{
		"VCD_ZONE_A_VDC": "acme-vdc",
		"VCD_ZONE_B_VDC": "acme-vdc-b",
		"VCD_ZONE_C_VDC": "acme-vdc-c",
	}
	return []layout{
		{name: "kube-vip", site: siteServices, image: ubuntu},
		{name: "edge gateway", template: "-edge-gateway", site: siteServices, image: ubuntu},
		{name: "zones", template: "-zones", site: siteZones, image: ubuntu, values: zones},
		{name: "dual stack", template: "-dual-stack", site: siteServices, image: ubuntu, pools: true},
		{
			name:     "edge gateway with IP Spaces",
			template: "-edge-gateway",
			site:     siteServices,
			image:    ubuntu,
			values:   map[string]string{"VCD_ORGANIZATION_VDC_NETWORK": "nodes-2"},
		},
		{name: "vApp per machine", site: siteServices, image: ubuntu, adapt: vAppPerMachine},
		{name: "IPAM", template: "-ipam", site: siteZones, image: ubuntu, pools: true},
		{name: "Flatcar", template: "-flatcar", site: siteServices, image: flatcar},
		{name: "external endpoint", site: siteZones, image: ubuntu, adapt: externalEndpoint},
		{name: "one node", template: "-development", site: siteZones, image: ubuntu},
	}
}

func vAppPerMachine(object *unstructured.Unstructured) error {
	if object.GetKind() != "VCDCluster" {
		return nil
	}
	return unstructured.SetNestedField(object.Object, string(infrav1.VAppPerMachine), "spec", "vApp", "layout")
}

func externalEndpoint(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "VCDCluster":
		return unstructured.SetNestedMap(object.Object, map[string]any{"type": string(infrav1.EndpointExternal)}, "spec",
			"controlPlaneLoadBalancer")
	case "KubeadmControlPlane":
		for _, field := range []string{"files", "preKubeadmCommands", "postKubeadmCommands"} { // of kube-vip
			unstructured.RemoveNestedField(object.Object, "spec", "kubeadmConfigSpec", field)
		}
	}
	return nil
}

// An identityKind is the way in which a cluster gets its credentials.
type identityKind string

// The kinds of identities.
const (
	identityOwn       identityKind = "of the cluster"
	identityToken     identityKind = "of the cluster with an API token"
	identityNamespace identityKind = "of the namespace"
	identityShared    identityKind = "of all namespaces"
)

func identityKinds() []identityKind {
	return []identityKind{identityOwn, identityToken, identityNamespace, identityShared}
}

// sharedIdentity is the name of the identities of a site that the clusters of a namespace share.
func sharedIdentity(site int, namespace string) string {
	return fmt.Sprintf("site-%d-%s", site, namespace)
}

// useIdentity makes an object of a cluster use a shared identity instead of that of the template.
func useIdentity(object *unstructured.Unstructured, cluster string, kind identityKind, shared string) error {
	name, _, err := unstructured.NestedString(object.Object, "spec", "identityRef", "name")
	if err != nil || name != cluster {
		return err
	}
	switch kind {
	case identityNamespace:
		return setIdentity(object, "VCDIdentity", shared)
	case identityShared:
		return setIdentity(object, "VCDClusterIdentity", shared)
	case identityOwn, identityToken:
	}
	return nil
}

func setIdentity(object *unstructured.Unstructured, kind, name string) error {
	return unstructured.SetNestedMap(object.Object, map[string]any{"kind": kind, "name": name}, "spec", "identityRef")
}
