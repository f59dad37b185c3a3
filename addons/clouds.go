// SPDX-License-Identifier: Apache-2.0

package addons

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A Cloud holds the settings that are specific to the manifest of one cloud. The manifest keeps the names that users of
// the original program know.
type Cloud struct {
	// Title and Short are the names of the cloud. Original is the program that introduced these names.
	Title, Short, Original string
	// Name is the name of the Deployment and its container, and the value of Label on its pods.
	Name, Label string
	// Provider is the value of --cloud-provider, and Config is the value of --cloud-config.
	Provider, Config string
	Volumes          []Volume
	// ClusterIDSecret is a Secret that may contain the ID of the cluster; empty means none.
	ClusterIDSecret string
	// OwnSecret is a Secret that the controller rewrites; empty means none.
	OwnSecret string
	// TLSSecrets adds a role that lets the controller read certificates. ReadsNamespace lets the controller read the
	// namespace kube-system.
	TLSSecrets, ReadsNamespace bool
	// LoadBalancers lets the controller keep records of Services.
	LoadBalancers bool
	// CredentialsSecret is a Secret in kube-system that the controller reads, and rereads after changes; empty means
	// none.
	CredentialsSecret string
	// ProxySecret is a Secret that may contain the environment variables of the proxy for the cloud:
	// [CCM.ProxyVariables].
	ProxySecret string
	// DaemonSet runs a pod on every control-plane node, of which one is the leader.
	DaemonSet bool
}

// Kind returns the kind of the workload object.
func (c Cloud) Kind() string {
	if c.DaemonSet {
		return "DaemonSet"
	}
	return "Deployment"
}

// Proxy returns the Secret with the environment variables of a proxy.
func (c Cloud) Proxy(variables map[string][]byte) (unstructured.Unstructured, error) {
	return secret(c.ProxySecret, variables)
}

// A Volume is the volume of a ConfigMap or a Secret.
type Volume struct {
	Name, Path, Comment string
	ConfigMap, Secret   string
	Optional            bool
}

// VCD returns the settings of VMware Cloud Director.
func VCD() Cloud {
	const folder = "/etc/kubernetes/vcloud"
	return Cloud{
		Title:    "VMware Cloud Director",
		Short:    "VCD",
		Original: "VMware's CPI 1.6.1",
		Name:     DeploymentName,
		Label:    "app",
		Provider: "vmware-cloud-director",
		Config:   folder + "/" + ConfigKey,
		Volumes: []Volume{
			{Name: "vcloud-ccm-config-volume", Path: folder, ConfigMap: ConfigMapName},
			{
				Name:     "vcloud-ccm-vcloud-basic-auth-volume",
				Path:     folder + "/basic-auth",
				Secret:   CredentialsName,
				Optional: true,
				Comment:  "Not available with a service account.",
			},
		},
		ClusterIDSecret: ClusterIDName,
		OwnSecret:       ServiceAccountName,
		ProxySecret:     ProxyName,
		TLSSecrets:      true,
		LoadBalancers:   true,
	}
}

// ManagedVCD returns the settings of VMware Cloud Director for installations by the manager. VMware's CSI driver mounts
// the Secrets that CPI used. Therefore this cloud has its credentials in a separate Secret, and the ID of the cluster
// in its configuration.
func ManagedVCD() Cloud {
	cloud := VCD()
	cloud.ClusterIDSecret = ""
	for i := range cloud.Volumes {
		if cloud.Volumes[i].Secret == CredentialsName {
			cloud.Volumes[i].Secret = ManagedCredentialsName
		}
	}
	return cloud
}

// CloudStack returns the settings of Apache CloudStack.
func CloudStack() Cloud {
	return Cloud{ //nolint:gosec // Names.
		Title:          "Apache CloudStack",
		Short:          "CloudStack",
		Original:       "CloudStack Kubernetes Provider 1.2.0",
		Name:           "cloud-controller-manager",
		Label:          "k8s-app",
		Provider:       "external-cloudstack",
		Config:         "/config/cloud-config",
		Volumes:        []Volume{{Name: "config-volume", Path: "/config", Secret: "cloudstack-secret"}}, //nolint:gosec // Names.
		ReadsNamespace: true,
		LoadBalancers:  true,
		ProxySecret:    "cloudstack-ccm-proxy",
	}
}

// VSphere returns the settings of vSphere.
func VSphere() Cloud {
	return Cloud{ //nolint:gosec // Names.
		Title:    "vSphere",
		Short:    "vCenter",
		Original: "the vSphere CPI 1.3x",
		Name:     "vsphere-cloud-controller-manager",
		Label:    "name",
		Provider: "vsphere",
		Config:   "/etc/cloud/vsphere.conf",
		Volumes: []Volume{
			{Name: "vsphere-config-volume", Path: "/etc/cloud", ConfigMap: "vsphere-cloud-config"},
		},
		CredentialsSecret: "vsphere-cloud-secret",
		ProxySecret:       "vsphere-ccm-proxy",
		DaemonSet:         true,
	}
}
