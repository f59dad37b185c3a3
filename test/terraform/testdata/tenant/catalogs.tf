# SPDX-License-Identifier: Apache-2.0

resource "vcd_catalog" "images" {
  name               = "tf-images"
  description        = "Images, revision ${var.revision}"
  storage_profile_id = data.vcd_storage_profile.standard.id
  delete_force       = true
  delete_recursive   = true

  metadata_entry {
    key         = "origin"
    value       = "revision ${var.revision}"
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_catalog_access_control" "images" {
  catalog_id            = vcd_catalog.images.id
  shared_with_everyone  = true
  everyone_access_level = "ReadOnly"
}

resource "vcd_catalog_vapp_template" "node" {
  catalog_id  = vcd_catalog.images.id
  name        = "tf-node"
  description = "Small node, revision ${var.revision}"
  ova_path    = "${var.files}/node.ova"

  metadata_entry {
    key         = "bits"
    value       = "64"
    type        = "MetadataNumberValue"
    user_access = "READWRITE"
    is_system   = false
  }
}

resource "vcd_catalog_vapp_template" "captured" {
  catalog_id  = vcd_catalog.images.id
  name        = "tf-captured"
  description = "Captured, revision ${var.revision}"

  capture_vapp {
    source_id                = vcd_vapp.app.id
    customize_on_instantiate = true
  }

  depends_on = [vcd_vapp_vm.web]
}

resource "vcd_catalog_media" "tools" {
  catalog_id  = vcd_catalog.images.id
  name        = "tf-tools"
  description = "Tools"
  media_path  = "${var.files}/tools.iso"

  metadata_entry {
    key         = "revision"
    value       = tostring(var.revision)
    type        = "MetadataStringValue"
    user_access = "READWRITE"
    is_system   = false
  }
}
