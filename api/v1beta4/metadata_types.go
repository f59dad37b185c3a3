// SPDX-License-Identifier: Apache-2.0

package v1beta4

// MetadataType is the type of a value of metadata.
// +kubebuilder:validation:Enum=String;Number;Boolean;DateTime
type MetadataType string

// Types of metadata.
const (
	// MetadataString is a text.
	MetadataString MetadataType = "String"
	// MetadataNumber is a whole number.
	MetadataNumber MetadataType = "Number"
	// MetadataBoolean is true or false.
	MetadataBoolean MetadataType = "Boolean"
	// MetadataDateTime is a time in the form of RFC 3339.
	MetadataDateTime MetadataType = "DateTime"
)

// MetadataAccess is the access of tenants to a metadata entry in VCD.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly;Private
type MetadataAccess string

// Access to metadata.
const (
	// MetadataReadWrite is VCD's domain GENERAL: tenants read and write it.
	MetadataReadWrite MetadataAccess = "ReadWrite"
	// MetadataReadOnly is VCD's domain SYSTEM with visibility READONLY: tenants read it.
	MetadataReadOnly MetadataAccess = "ReadOnly"
	// MetadataPrivate is VCD's domain SYSTEM with visibility PRIVATE: tenants do not see it.
	MetadataPrivate MetadataAccess = "Private"
)

// MetadataEntry is an entry of the metadata of a VM or vApp.
// +kubebuilder:validation:XValidation:rule="self.access == oldSelf.access",fieldPath=".access",message="is immutable: remove the entry, and add it again"
type MetadataEntry struct {
	// key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`

	// value of the entry, as a text of its type.
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1000
	Value *string `json:"value,omitempty"`

	// type of the value: String, which is the default, Number, Boolean or DateTime.
	// +optional
	// +kubebuilder:default=String
	Type MetadataType `json:"type,omitempty"`

	// access of tenants: ReadWrite, which is the default, ReadOnly or Private. Only a system administrator may write
	// entries that are ReadOnly or Private.
	// +optional
	// +kubebuilder:default=ReadWrite
	Access MetadataAccess `json:"access,omitempty"`
}

// RecordedMetadata is an entry of metadata that the controller wrote to a VM or vApp.
type RecordedMetadata struct {
	// key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`

	// access of tenants to the entry.
	// +required
	Access MetadataAccess `json:"access,omitempty"`

	// type of the value; empty while it is not known whether VCD has stored the entry.
	// +optional
	Type MetadataType `json:"type,omitempty"`

	// value of the entry, as returned by VCD.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value,omitempty"`
}
